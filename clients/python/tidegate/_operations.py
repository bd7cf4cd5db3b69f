"""Operations, as flows that both clients perform."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict

from ._errors import (
    ApiError,
    OperationCanceledError,
    OperationFailedError,
    OutcomeUnknownError,
    WaitTimeoutError,
)
from ._transport import Flow, OutOfTimeError, Request, Transport, new_key, segment
from ._types import (
    Accepted,
    Completed,
    FaultClass,
    Group,
    Operation,
    State,
    Submission,
    Why,
    read_operation,
    read_time,
    write_time,
)

# How long the server is asked to wait in one request.
WAIT = 25.0
# How long its response may be on the way when the time is over: it brings the id.
GRACE = 1.0
SETTLED = frozenset({"succeeded", "failed", "canceled", "unknown"})
PAGE = 200

Resolution = Literal["succeeded", "failed", "repeat"]
CompletionOutcome = Literal["succeeded", "failed", "retry"]


class CompletionDetails(TypedDict, total=False):
    """The rest of a completion: `result` of a job that succeeded, `fault`, the message of one that
    did not, and `token`, that of the attempt, which is all that its holder needs."""

    result: Any
    fault: str
    fault_class: FaultClass
    token: str


class Filter(TypedDict):
    """Which operations to list."""

    group: NotRequired[str]
    state: NotRequired[State | Sequence[State]]
    kind: NotRequired[str]
    upstream: NotRequired[str]
    dedupe_key: NotRequired[str]
    created_after: NotRequired[datetime]
    created_before: NotRequired[datetime]
    may_have_happened: NotRequired[bool]


def submit(transport: Transport, submission: Submission) -> Flow[Accepted]:
    """Submits an operation."""
    body = with_key(submission)
    wire = yield from transport.exchange(Request("POST", "/v1/operations", body=body))
    return read_accepted(wire, submission)


def call(transport: Transport, submission: Submission, timeout: float | None) -> Flow[Operation]:
    """Submits an operation and waits for its success."""
    body = with_key(submission)
    end = end_of(timeout)
    try:
        wire = yield from transport.exchange(waiting("POST", "/v1/operations", end, body), end + GRACE)
    except OutOfTimeError as error:
        raise WaitTimeoutError(None, str(body["dedupe_key"])) from error
    operation = yield from settled(transport, read_operation(wire), end)
    if operation.state == "succeeded":
        return operation
    if operation.state == "failed":
        raise OperationFailedError(operation)
    if operation.state == "canceled":
        raise OperationCanceledError(operation)
    raise OutcomeUnknownError(operation)


def wait(transport: Transport, id: str, timeout: float | None) -> Flow[Operation]:
    """Waits until an operation has ended or its outcome is unknown."""
    end = end_of(timeout)
    return (yield from settled(transport, (yield from look(transport, id, end)), end))


def settled(transport: Transport, operation: Operation, end: float) -> Flow[Operation]:
    """Looks at an operation until it is settled."""
    while operation.state not in SETTLED:
        if time.monotonic() >= end:
            raise WaitTimeoutError(operation.id, operation.dedupe_key)
        operation = yield from look(transport, operation.id, end)
    return operation


def look(transport: Transport, id: str, end: float) -> Flow[Operation]:
    """Looks at an operation once, for as long as the server waits."""
    try:
        wire = yield from transport.exchange(waiting("GET", path_of(id), end), end + GRACE)
    except OutOfTimeError as error:
        raise WaitTimeoutError(id, None) from error
    return read_operation(wire)


def batch(transport: Transport, submissions: Iterable[Submission]) -> Flow[list[Accepted | ApiError]]:
    """Submits many operations."""
    submissions = list(submissions)
    body = {"operations": [with_key(submission) for submission in submissions]}
    wire = yield from transport.exchange(Request("POST", "/v1/operations/batch", body=body))
    return [
        ApiError(0, member) if "error" in member else read_accepted(member, submission)
        for member, submission in zip(wire["operations"], submissions, strict=True)
    ]


def get(transport: Transport, id: str) -> Flow[Operation]:
    """The operation as it is now."""
    return read_operation((yield from transport.exchange(Request("GET", path_of(id)))))


def page(
    transport: Transport, wanted: Filter, cursor: str | None
) -> Flow[tuple[list[Operation], str | None]]:
    """A page of operations, and the cursor of the next."""
    params: dict[str, str | int] = {"limit": PAGE}
    for name, value in wanted.items():
        if isinstance(value, datetime):
            params[name] = write_time(value)
        elif isinstance(value, bool):
            params[name] = str(value).lower()
        elif isinstance(value, str):
            params[name] = value
        elif isinstance(value, Sequence):
            params[name] = ",".join(value)
    if cursor is not None:
        params["cursor"] = cursor
    wire = yield from transport.exchange(Request("GET", "/v1/operations", params=params))
    return [read_operation(one) for one in wire["operations"]], wire["next_cursor"]


def why(transport: Transport, id: str) -> Flow[Why]:
    """What an operation waits for."""
    wire = yield from transport.exchange(Request("GET", f"{path_of(id)}/why"))
    return Why(
        waiting_for=wire["waiting_for"],
        name=wire["name"],
        until=read_time(wire["until"]),
        starts_at=read_time(wire["starts_at"]),
        behind=wire["behind"],
        because=wire["because"],
    )


def command(
    transport: Transport, id: str, verb: str, reason: str | None, fields: Mapping[str, Any] | None = None
) -> Flow[Operation]:
    """Cancels, runs again or resolves an operation. The reason is for the audit log."""
    body = dict(fields or {}) if reason is None else {**(fields or {}), "reason": reason}
    request = Request("POST", f"{path_of(id)}/{verb}", body=body, headers=new_key())
    return read_operation((yield from transport.exchange(request)))


def resolve(
    transport: Transport, id: str, outcome: Resolution, result: Any, reason: str | None
) -> Flow[Operation]:
    """Says what happened."""
    body = {"as": outcome} if result is None else {"as": outcome, "result": result}
    return command(transport, id, "resolve", reason, body)


def complete(
    transport: Transport, id: str, outcome: CompletionOutcome, details: CompletionDetails
) -> Flow[Completed]:
    """Reports how a job ended. With its token, the first report counts, however often it is sent."""
    token = details.get("token")
    headers = {"tidegate-completion-token": token} if token else new_key()
    body: dict[str, Any] = {"outcome": outcome}
    if (result := details.get("result")) is not None:
        body["result"] = result
    if (fault := details.get("fault")) is not None:
        body["fault"] = {"message": fault}
        if (fault_class := details.get("fault_class")) is not None:
            body["fault"]["class"] = fault_class
    request = Request("POST", f"{path_of(id)}/complete", body=body, headers=headers)
    wire = yield from transport.exchange(request)
    return Completed(wire["applied"], read_operation(wire))


def of_group(transport: Transport, group: str, verb: str, body: Mapping[str, Any]) -> Flow[Group]:
    """Pauses or resumes a group."""
    path = f"/v1/groups/{segment(group)}/{verb}"
    given = {name: value for name, value in body.items() if value is not None}
    wire = yield from transport.exchange(Request("POST", path, body=given, headers=new_key()))
    return Group(wire["group"], wire["state"], wire["depth"])


def with_key(submission: Submission) -> dict[str, Any]:
    """The submission for the wire, with a key: a retry of this call is recognized by it."""
    wire: dict[str, Any] = {**submission}
    if wire.get("dedupe_key") is None:
        wire["dedupe_key"] = f"call-{uuid.uuid4()}"
    if isinstance(deadline := wire.get("deadline_at"), datetime):
        wire["deadline_at"] = write_time(deadline)
    return wire


def read_accepted(wire: Mapping[str, Any], submission: Submission) -> Accepted:
    """With a key that the client made, only its own retry can have come first."""
    deduplicated = submission.get("dedupe_key") is not None and bool(wire["deduplicated"])
    return Accepted(wire["id"], wire["state"], deduplicated)


def waiting(method: str, path: str, end: float, body: object = None) -> Request:
    """A request that the server answers when the operation is settled, or when it is time."""
    wait = max(0.001, min(WAIT, end - time.monotonic()))
    return Request(method, path, {"wait_ms": math.ceil(wait * 1_000)}, body, wait=wait)


def end_of(timeout: float | None) -> float:
    """The time at which a wait ends."""
    return math.inf if timeout is None else time.monotonic() + timeout


def path_of(id: str) -> str:
    """The path of an operation."""
    return f"/v1/operations/{segment(id)}"
