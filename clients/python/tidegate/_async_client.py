"""The client for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from . import _operations as operations
from ._entities import AsyncEntities
from ._errors import ApiError
from ._events import Connections, Event, read_events_async
from ._leases import AsyncLeases
from ._limits import AsyncLimits
from ._operations import CompletionDetails, CompletionOutcome, Filter, Resolution
from ._transport import Transport, run_async
from ._types import Accepted, Completed, Group, Operation, Submission, Why
from ._worker import AsyncHandler, AsyncWorker, OnError


class AsyncClient:
    """A client of a Tidegate server, for asyncio. Its methods are those of `Client`.

    `server` and `token` default to `TIDEGATE_SERVER` and `TIDEGATE_TOKEN` from the environment, then
    to `http://127.0.0.1:7400` and none. `timeout` is that of one try, in seconds, beside the time
    that the server was asked to wait. `transport` is another transport of httpx.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 7,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport = Transport.configured(server, token, timeout, retries)
        self._http = httpx.AsyncClient(
            base_url=self._transport.server, headers=self._transport.headers(), transport=transport
        )
        self.limits = AsyncLimits(self._transport, self._http)
        self.leases = AsyncLeases(self._transport, self._http)
        self.entities = AsyncEntities(self._transport, self._http)

    async def submit(self, **submission: Unpack[Submission]) -> Accepted:
        """Submits an operation. When it returns, the operation is accepted and durable."""
        return await run_async(self._http, operations.submit(self._transport, submission))

    async def call(self, *, timeout: float | None = None, **submission: Unpack[Submission]) -> Operation:
        """Submits an operation, waits for its end and returns it with its result.

        Raises `OperationFailedError`, `OperationCanceledError` or `OutcomeUnknownError` when it
        ended otherwise, and `WaitTimeoutError` when it has not ended in time.
        """
        return await run_async(self._http, operations.call(self._transport, submission, timeout))

    async def wait(self, id: str, *, timeout: float | None = None) -> Operation:
        """Waits until an operation has ended or its outcome is unknown, and returns it."""
        return await run_async(self._http, operations.wait(self._transport, id, timeout))

    async def batch(self, submissions: Iterable[Submission]) -> list[Accepted | ApiError]:
        """Submits up to 1,000 operations. Each is accepted or refused on its own.

        The results are in the same order; a refused one is an `ApiError`.
        """
        return await run_async(self._http, operations.batch(self._transport, submissions))

    async def get(self, id: str) -> Operation:
        """The operation as it is now."""
        return await run_async(self._http, operations.get(self._transport, id))

    async def list(self, **wanted: Unpack[Filter]) -> AsyncIterator[Operation]:
        """Operations, newest first, without their results; page after page as you read on."""
        cursor: str | None = None
        while True:
            page, cursor = await run_async(self._http, operations.page(self._transport, wanted, cursor))
            for operation in page:
                yield operation
            if cursor is None:
                return

    async def why(self, id: str) -> Why:
        """What an operation waits for."""
        return await run_async(self._http, operations.why(self._transport, id))

    async def cancel(self, id: str, *, reason: str | None = None) -> Operation:
        """Cancels an operation; one that is running is asked to stop."""
        return await run_async(self._http, operations.command(self._transport, id, "cancel", reason))

    async def rerun(self, id: str, *, reason: str | None = None) -> Operation:
        """Runs a failed or canceled operation again.

        It joins the end of its group, or becomes the first of a group that is held for it.
        """
        return await run_async(self._http, operations.command(self._transport, id, "rerun", reason))

    async def resolve(
        self, id: str, outcome: Resolution, *, result: Any = None, reason: str | None = None
    ) -> Operation:
        """Records what happened to an operation whose outcome is unknown.

        `result` is kept as the body of its result, if it succeeded.
        """
        return await run_async(self._http, operations.resolve(self._transport, id, outcome, result, reason))

    async def complete(
        self, id: str, outcome: CompletionOutcome, **details: Unpack[CompletionDetails]
    ) -> Completed:
        """Reports how a job that ends elsewhere ended; needs the scope `operate`, or its `token`."""
        return await run_async(self._http, operations.complete(self._transport, id, outcome, details))

    async def pause(
        self, group: str, *, by: str | None = None, reason: str | None = None, create: bool | None = None
    ) -> Group:
        """Pauses a group. A name that no operation has is refused, unless `create` is true."""
        body = {"by": by, "reason": reason, "create": create}
        return await run_async(self._http, operations.of_group(self._transport, group, "pause", body))

    async def resume(self, group: str, *, reason: str | None = None) -> Group:
        """Resumes a group."""
        body = {"reason": reason}
        return await run_async(self._http, operations.of_group(self._transport, group, "resume", body))

    def worker(
        self,
        kinds: Mapping[str, AsyncHandler],
        *,
        concurrency: int = 16,
        lease: float = 30.0,
        on_error: OnError | None = None,
    ) -> AsyncWorker:
        """A worker for operations of remote kinds; `run` it. `kinds` has the handler of each kind.

        `lease` is how long the server waits for a sign of this worker before others get its jobs, in
        seconds. `on_error` learns of what went wrong beside the jobs.
        """
        return AsyncWorker(self._transport, self._http, kinds, concurrency, lease, on_error)

    def events(
        self,
        *,
        group: str | None = None,
        id: str | None = None,
        kind: str | None = None,
        results: bool | None = None,
        last_event_id: str | None = None,
    ) -> AsyncIterator[Event]:
        """Changes as they happen. It reconnects and resumes where it was; leave the loop to end it.

        With `results` the end of an operation comes with its result and fault.
        """
        params = {"group": group, "id": id, "kind": kind, "results": results}
        return read_events_async(self._http, Connections(self._transport, params, last_event_id))

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
