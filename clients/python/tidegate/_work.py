"""What workers ask for, get and report: the part that both kinds of workers share."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

import httpx

from ._errors import ApiError, TidegateError
from ._transport import Flow, Request, Transport, explain, parse
from ._types import FaultClass

# How long a take waits for work.
WAIT = 20.0
# The most reports in one request.
REPORTS = 200
# The longest body of reports, in characters: well under what the server reads.
REPORTS_LENGTH = 8 * 1024 * 1024
# How much of a message is reported, in characters.
MESSAGE_LENGTH = 1_000
# The errors after which a report is sent again: its partition was not to be reached.
UNAVAILABLE = frozenset({"TG0017", "TG0018", "TG0022", "TG0023", "TG0026"})

USUAL: Mapping[str, FaultClass] = {
    "failed": "validation",
    "retry": "transient",
    "throttled": "rate_limited",
    "unknown": "transient",
}


class JobError(TidegateError):
    """What became of a job that did not succeed. Any other exception means `retry`.

    `failed`: running it again is pointless. `retry`: it may run again, and an attempt is spent.
    `throttled`: wait, and no attempt is spent. `unknown`: it may have taken effect. `after` is the
    shortest wait in seconds, `limit` the limit that is closed. `blame` names the one limit of
    `job.alternative` that the failure counts against, or none with an empty list; without it the
    class of the fault decides. `may_have_happened`: it took effect in spite of the failure, or may
    have. What is known of the attempt is kept with it.
    """

    def __init__(
        self,
        outcome: Literal["failed", "retry", "throttled", "unknown"],
        message: str,
        *,
        after: float | None = None,
        limit: str | None = None,
        fault_class: FaultClass | None = None,
        blame: Sequence[str] | None = None,
        external_id: str | None = None,
        memo: Any = None,
        cost: int | None = None,
        may_have_happened: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.after = after
        self.limit = limit
        self.fault_class = fault_class
        self.blame = blame
        self.external_id = external_id
        self.memo = memo
        self.cost = cost
        self.may_have_happened = may_have_happened


@dataclass(frozen=True)
class Awaiting:
    """Return it from a handler when the job ends elsewhere: no worker is held.

    It ends by its completion (`POST /v1/operations/{id}/complete`), or when a handler asks about it
    after `after` seconds, with `job.awaited`. After `timeout` seconds its outcome is unknown. `cost` is
    what it may cost, in millionths of a unit, for the ledger.
    """

    external_id: str | None = None
    memo: Any = None
    after: float | None = None
    timeout: float | None = None
    cost: int | None = None


@dataclass(frozen=True)
class AwaitedJob:
    """A job that was reported as awaiting before. Do not start it again."""

    external_id: str | None
    memo: Any
    cancel_requested: bool


@dataclass(frozen=True)
class Alternative:
    """Which of several ways to execute an operation was granted, and the limits that it charges.

    Of a generation, the name is `{provider}/{key}`.
    """

    name: str
    limits: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """An operation to execute.

    `attempt` above 1: an earlier one may have done part of the work. `stop` is set when the operation
    was canceled, or when another worker may have it. `completion_token` lets others complete this
    attempt; it is a secret.
    """

    id: str
    kind: str
    group: str
    payload: Any
    attempt: int
    awaited: AwaitedJob | None = None
    completion_token: str | None = field(default=None, repr=False)
    alternative: Alternative | None = None
    stop: threading.Event = field(default_factory=threading.Event, repr=False)


@dataclass
class Active:
    """A job in progress, and when another worker may get it."""

    job: Job
    fence: int
    until: float
    canceled: bool = False


def once(transport: Transport, request: Request) -> Flow[Any]:
    """Sends a request one time.

    A report or an extension that comes twice changes nothing, and a take that gets lost comes back
    by its lease.
    """
    reply = yield replace(request, timeout=transport.timeout + request.wait)
    if isinstance(reply, httpx.Response) and reply.is_success and (body := parse(reply)) is not None:
        return body
    raise explain(request, reply)[0]


def take(
    transport: Transport,
    kinds: Sequence[str],
    free: int,
    lease: float,
    extensions: Mapping[str, Any] = MappingProxyType({}),
) -> Flow[list[Active]]:
    """Waits for jobs."""
    body = {
        "kinds": list(kinds),
        "max": min(free, 1_000),
        "wait_ms": round(WAIT * 1_000),
        "lease_ms": round(lease * 1_000),
    }
    asked = time.monotonic()
    request = Request("POST", "/v1/work/take", body=body, wait=WAIT, extensions=extensions)
    wire = yield from once(transport, request)
    return [Active(read_job(claim), claim["fence"], asked + lease) for claim in wire["claims"]]


def extend(transport: Transport, held: Sequence[Active], lease: float) -> Flow[list[Active]]:
    """Extends the claims of jobs, and returns those that have to stop."""
    claims = [{"id": one.job.id, "fence": one.fence, "lease_ms": round(lease * 1_000)} for one in held]
    asked = time.monotonic()
    wire = yield from once(transport, Request("POST", "/v1/work/extend", body={"claims": claims}))
    stopped = []
    for one, answer in zip(held, wire["claims"], strict=True):
        if not answer or "error" in answer:
            # It was not extended, and may be next time: it is held until its lease ends.
            continue
        if answer["held"]:
            one.until = asked + lease
        # A job that passes a cancel on is not stopped by it.
        is_canceling = one.job.awaited is not None and one.job.awaited.cancel_requested
        one.canceled = bool(answer.get("cancel_requested")) and not is_canceling
        if not answer["held"] or one.canceled:
            stopped.append(one)
    return stopped


def split(reports: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Splits reports into requests that are not too long for the server."""
    parts: list[list[dict[str, Any]]] = []
    length = 0
    for report in reports:
        size = len(json.dumps(report))
        length += size
        if parts and length <= REPORTS_LENGTH:
            parts[-1].append(report)
        else:
            parts.append([report])
            length = size
    return parts


# The reports that were not answered, and those that were refused.
Settled = tuple[list[dict[str, Any]], list[tuple[dict[str, Any], ApiError]]]


def settle(transport: Transport, settlements: Sequence[dict[str, Any]]) -> Flow[Settled]:
    """Reports what became of jobs.

    Returns the reports that were not answered, and those that were refused. Raises when the server
    cannot be reached, or refuses the worker itself.
    """
    body = {"settlements": list(settlements)}
    try:
        wire = yield from once(transport, Request("POST", "/v1/work/settle", body=body))
    except ApiError as error:
        if not is_refusal(error) or error.status in (401, 403):
            raise
        if len(settlements) == 1:
            return [], [(settlements[0], error)]
        return (yield from settle_each(transport, settlements))
    answers = wire["settlements"]
    return unanswered(answers, settlements), refused(answers, settlements)


def settle_each(transport: Transport, settlements: Sequence[dict[str, Any]]) -> Flow[Settled]:
    """Reports jobs one by one: one of the reports made the server refuse them all."""
    again: list[dict[str, Any]] = []
    refusals: list[tuple[dict[str, Any], ApiError]] = []
    for one in settlements:
        not_answered, not_accepted = yield from settle(transport, [one])
        again += not_answered
        refusals += not_accepted
    return again, refusals


def unanswered(
    answers: Sequence[Mapping[str, Any] | None], settlements: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The reports whose partitions were not to be reached."""
    return [
        one
        for one, answer in zip(settlements, answers, strict=True)
        if not answer or answer.get("error", {}).get("code") in UNAVAILABLE
    ]


def refused(
    answers: Sequence[Mapping[str, Any] | None], settlements: Sequence[dict[str, Any]]
) -> list[tuple[dict[str, Any], ApiError]]:
    """The reports that the server refused."""
    return [
        (one, ApiError(0, answer))
        for one, answer in zip(settlements, answers, strict=True)
        if answer and "error" in answer and answer["error"].get("code") not in UNAVAILABLE
    ]


class Replacement(dict[str, Any]):
    """A report that stands for a refused one. It is not replaced once more."""


def replacement(report: dict[str, Any], error: TidegateError) -> list[dict[str, Any]]:
    """The report to send instead of one that the server refused: without one its job would run again.

    It has nothing in it that a server could refuse. What was done or started fails: it would be done
    again, and refused again.
    """
    outcome = report["outcome"]
    if isinstance(report, Replacement) or outcome in ("returned", "canceled"):
        return []
    fault = report.get("fault")
    before = fault["message"] if fault else "it took effect, or was started"
    message = f"{before}; the report on it was refused: {error}"[:MESSAGE_LENGTH]
    plain = {"awaiting": "failed", "succeeded": "failed", "throttled": "retry"}
    instead = plain.get(outcome, outcome)
    fault_class = "validation" if instead == "failed" else "transient"
    fault = {"class": fault_class, "message": message, "may_have_happened": not fault}
    return [Replacement(id=report["id"], fence=report["fence"], outcome=instead, fault=fault)]


def is_refusal(error: TidegateError) -> bool:
    """Whether the server would refuse the same again."""
    return isinstance(error, ApiError) and 400 <= error.status < 500 and error.status != 429


def came_late(jobs: Sequence[Active], lease: float) -> bool:
    """Whether little may be left of the leases of jobs, counted from when they were asked for."""
    return any(active.until - time.monotonic() < lease * 2 / 3 for active in jobs)


def read_job(claim: Mapping[str, Any]) -> Job:
    """A job as the server wrote it."""
    return Job(
        id=claim["id"],
        kind=claim["kind"],
        group=claim["group"],
        payload=claim["payload"],
        attempt=claim["attempt"],
        awaited=read_awaited(claim.get("job")),
        completion_token=claim.get("completion_token"),
        alternative=read_alternative(claim.get("alternative")),
    )


def read_alternative(wire: Mapping[str, Any] | None) -> Alternative | None:
    """The alternative that was granted, if the operation has some."""
    return None if wire is None else Alternative(wire["name"], tuple(wire["limits"]))


def read_awaited(wire: Mapping[str, Any] | None) -> AwaitedJob | None:
    """The job to ask about, if there is one."""
    if wire is None:
        return None
    return AwaitedJob(wire["external_id"], wire["memo"], wire["cancel_requested"])


def succeeded(active: Active, result: Any) -> dict[str, Any]:
    """The report on a handler that returned."""
    report: dict[str, Any] = {"id": active.job.id, "fence": active.fence}
    if isinstance(result, Awaiting):
        report |= {"outcome": "awaiting", "external_id": result.external_id, "memo": result.memo}
        report |= {"after_ms": milliseconds(result.after), "timeout_ms": milliseconds(result.timeout)}
        report |= kept({"cost": result.cost})
    else:
        report |= {"outcome": "succeeded", "result": result}
    try:
        json.dumps(report, allow_nan=False)
    except (TypeError, ValueError) as error:
        # It fails its own job, not the reports of others.
        message = f"the result of the handler is not JSON: {error}"
        raise JobError("failed", message, may_have_happened=True) from error
    return report


def failed(active: Active, error: BaseException) -> dict[str, Any]:
    """The report on a handler that raised."""
    report: dict[str, Any] = {"id": active.job.id, "fence": active.fence}
    if active.canceled:
        # The next one to ask about an awaited job passes the cancel on.
        return report | {"outcome": "returned" if active.job.awaited else "canceled"}
    if not isinstance(error, JobError):
        message = str(error) or type(error).__name__
        return report | {"outcome": "retry", "fault": {"class": "transient", "message": message}}
    fault: dict[str, Any] = {"class": error.fault_class or USUAL[error.outcome], "message": str(error)}
    report |= {
        "outcome": error.outcome,
        "fault": fault | kept({"may_have_happened": error.may_have_happened}),
        "after_ms": milliseconds(error.after),
        "limit": error.limit,
    }
    note = {"external_id": error.external_id, "memo": error.memo, "cost": error.cost}
    return report | kept({"blame": None if error.blame is None else list(error.blame)} | note)


def kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are given: an older server does not know the others."""
    return {name: value for name, value in fields.items() if value is not None}


def returned(active: Active) -> dict[str, Any]:
    """The report on a job that was not started."""
    return {"id": active.job.id, "fence": active.fence, "outcome": "returned"}


def milliseconds(seconds: float | None) -> int | None:
    """A time for the wire."""
    return None if seconds is None else round(seconds * 1_000)
