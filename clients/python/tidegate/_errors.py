"""The errors of this client. All of them are `TidegateError`s."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._types import Operation


class TidegateError(Exception):
    """The base of all errors."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a request."""

    code: str
    field: str | None
    message: str


class ApiError(TidegateError):
    """The server refused the request.

    `code` is stable, for programs: `TG0008`, or `IDEMPOTENCY_…`. `title` is the same for every error
    of its code, `message` says what is wrong this time, `field` where. `detail` has what else is
    known, `problems` everything that is wrong with the request. `status` is 0 for a member of a
    batch.
    """

    def __init__(self, status: int, body: object) -> None:
        wire = body if isinstance(body, Mapping) else {}
        told = wire.get("error")
        error: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
        self.status = status
        # Errors about an idempotency key have a shape of their own.
        self.code: str = error.get("code") or wire.get("error_code") or f"HTTP_{status}"
        self.title: str = error.get("title") or self.code
        stranger = f"The server answered {status}, and not as Tidegate does: is this its address?"
        fallback = wire.get("detail") or stranger
        self.message: str = error.get("message") or str(fallback)
        self.field: str | None = error.get("field")
        self.detail: Mapping[str, Any] = error.get("detail") or {}
        self.problems = [Problem(p["code"], p["field"], p["message"]) for p in error.get("problems", [])]
        self.link: str | None = error.get("link")
        super().__init__(f"{self.code}: {self.message}")


class NoResponseError(TidegateError):
    """No response came, however often it was tried. Whether the last try had an effect is unknown."""


class OperationError(TidegateError):
    """An operation ended otherwise than by success."""

    def __init__(self, operation: Operation) -> None:
        cause = f": {operation.fault.message}" if operation.fault else ""
        super().__init__(f"Operation {operation.id} is {operation.state}{cause}")
        self.operation = operation


class OperationFailedError(OperationError):
    """It failed for good; `operation.fault` says why."""


class OperationCanceledError(OperationError):
    """It was canceled."""


class OutcomeUnknownError(OperationError):
    """The request was sent and no response came. It may have taken effect; an operator decides."""


class WaitTimeoutError(TidegateError):
    """The operation has not ended in time. It goes on: look again under its id.

    `id` is `None` if not even its acceptance was heard of; then look for its `dedupe_key`.
    """

    def __init__(self, id: str | None, dedupe_key: str | None) -> None:
        super().__init__(
            f"Operation {id} has not ended in time." if id else "The operation was not accepted in time."
        )
        self.id = id
        self.dedupe_key = dedupe_key


class LeaseLostError(TidegateError):
    """The lease is not, or no longer, held."""

    def __init__(self, lease: str, message: str) -> None:
        super().__init__(message)
        self.lease = lease
