"""What the server takes and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NotRequired, TypedDict

FaultClass = Literal["validation", "forbidden", "not_found", "rate_limited", "transient", "conflict"]

# What every result of an HTTP call or of a worker has.
RESPONSE = {"status", "headers", "body"}

State = Literal["queued", "waiting", "running", "unknown", "succeeded", "failed", "canceled"]


class HttpRequest(TypedDict):
    """One HTTP request below the base URL of its upstream."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    path: str
    headers: NotRequired[Mapping[str, str]]
    body: NotRequired[Any]


# Values by JSON pointer, such as {"/status": ["succeeded"]}: all must have one of theirs.
Conditions = Mapping[str, Sequence[Any]]


class Callback(TypedDict):
    """Where the service is told the URL and the token: a header, or a JSON pointer of the body."""

    url: str
    token: NotRequired[str]
    done: NotRequired[Conditions]
    failed: NotRequired[Conditions]


class Poll(TypedDict):
    """How a job is polled; `{/id}` in `path` is a value of the response to the submission."""

    path: str
    every_s: NotRequired[int]
    done: Conditions
    failed: NotRequired[Conditions]


class Completion(TypedDict):
    """How a job ends: the service calls back, or is polled, or both."""

    callback: NotRequired[bool | Callback]
    poll: NotRequired[Poll]
    timeout_s: NotRequired[int]


class Submission(TypedDict):
    """An operation to submit: a call (`upstream`, `request`), or work for a remote worker.

    Work has a `kind` that the server leaves to remote workers, and a `payload` of any JSON.

    `dedupe_key`: two submissions with one key are one operation. Take it from your own records
    where the process may die and submit again. Without one the client makes one for each call, so
    that its own retries are safe.
    """

    group: str
    upstream: NotRequired[str]
    request: NotRequired[HttpRequest | Mapping[str, Any]]
    kind: NotRequired[str]
    payload: NotRequired[Any]
    dedupe_key: NotRequired[str]
    cost: NotRequired[Mapping[str, int]]
    max_attempts: NotRequired[int]
    deadline_ms: NotRequired[int]
    deadline_at: NotRequired[datetime]
    delay_ms: NotRequired[int]
    priority: NotRequired[Literal[0, 1, 2, 3, 4]]
    on_unknown: NotRequired[Literal["repeat", "ask", "reconcile"]]
    on_failure: NotRequired[Literal["skip", "hold"]]
    deployment_id: NotRequired[str]
    completion: NotRequired[Completion]


class Figures(TypedDict):
    """A bucket holds `capacity` tokens, and `refill_per_s` come back each second."""

    capacity: float
    refill_per_s: float


class BucketCost(TypedDict):
    """Another bucket to take from in the same step; `cost` is 1 by default."""

    name: str
    cost: NotRequired[float]
    capacity: NotRequired[float]
    refill_per_s: NotRequired[float]


@dataclass(frozen=True)
class Accepted:
    """An accepted operation. `deduplicated`: your `dedupe_key` was used before."""

    id: str
    state: State
    deduplicated: bool


@dataclass(frozen=True)
class Result:
    """The stored part of the upstream's response, or what a worker returned.

    Of kinds that are more than one HTTP call, such as generations, `body` is the whole result, and
    there are no `headers`. Otherwise `body` is JSON if its content type says so, otherwise text, and
    `{"base64": …}` for what is not UTF-8; `json` is `False` if the content type says JSON and the
    body is stored in another form. If it is `truncated`, it was not stored, and `body` says why.
    `status` is `None` where no response had one: also where a completion reported that a job failed.
    """

    status: int | None
    headers: Mapping[str, str]
    body: Any
    truncated: bool = False
    json: bool = True


@dataclass(frozen=True)
class Fault:
    """The last failure of an operation. `kind` is its class: `validation`, `transient`, …

    `may_have_happened` says whether this attempt or an earlier one may have taken effect.
    """

    kind: str
    message: str
    may_have_happened: bool = False


@dataclass(frozen=True)
class Operation:
    """An operation. `result` is not in lists, and `None` where an operator recorded the outcome.
    `request` is what it asks for, with secrets masked: method and path, and, where one operation
    was read by its id, query, headers and body. `job_id` is the id by which the upstream knows its
    job, if the operation did not succeed."""

    id: str
    state: State
    kind: str
    group: str
    attempt: int
    created_at: datetime
    finished_at: datetime | None
    result: Result | None
    fault: Fault | None
    upstream: str | None
    dedupe_key: str | None
    request: Mapping[str, Any] | None = None
    job_id: str | None = None
    request_id: str | None = None
    deployment_id: str | None = None
    deadline_at: datetime | None = None
    max_attempts: int | None = None

    @property
    def body(self) -> Any:
        """The body of the result, if there is one."""
        return self.result.body if self.result else None


@dataclass(frozen=True)
class Completed:
    """A completion. `applied` says whether it ended the attempt: the first one does."""

    applied: bool
    operation: Operation


@dataclass(frozen=True)
class Group:
    """A group. `state` is `paused`, `held`, `idle`, or that of its first operation."""

    name: str
    state: str
    depth: int


@dataclass(frozen=True)
class Why:
    """What an operation waits for; `because` says it in a sentence, `starts_at` is an estimate."""

    waiting_for: str
    name: str | None
    until: datetime | None
    starts_at: datetime | None
    behind: str | None
    because: str


def read_time(text: str | None) -> datetime | None:
    """Parses a time of the server."""
    return datetime.fromisoformat(text) if text else None


def write_time(time: datetime) -> str:
    """Writes a time for the server; one without a zone is local."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_operation(wire: Mapping[str, Any]) -> Operation:
    """Parses an operation."""
    result, fault = wire.get("result"), wire["fault"]
    return Operation(
        id=wire["id"],
        state=wire["state"],
        kind=wire["kind"],
        group=wire["group"],
        attempt=wire["attempt"],
        created_at=datetime.fromisoformat(wire["created_at"]),
        finished_at=read_time(wire["finished_at"]),
        result=None if result is None else read_result(result),
        fault=read_fault(fault) if fault else None,
        upstream=wire.get("upstream"),
        dedupe_key=wire.get("dedupe_key"),
        request=wire.get("request"),
        job_id=wire.get("job_id"),
        request_id=wire.get("request_id"),
        deployment_id=wire.get("deployment_id"),
        deadline_at=read_time(wire.get("deadline_at")),
        max_attempts=wire.get("max_attempts"),
    )


def read_result(wire: Any) -> Result:
    """Parses a result. One of a kind that is no single HTTP call has a shape of its own."""
    if not (isinstance(wire, Mapping) and RESPONSE <= wire.keys()):
        return Result(None, {}, wire)
    truncated, json = wire.get("truncated", False), wire.get("json", True)
    return Result(wire["status"], wire["headers"], wire["body"], truncated, json)


def read_fault(wire: Mapping[str, Any]) -> Fault:
    """Parses a fault."""
    return Fault(wire["class"], wire["message"], wire.get("may_have_happened", False))
