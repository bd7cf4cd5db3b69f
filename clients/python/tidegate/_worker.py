"""Workers: they take operations of remote kinds, execute them and report what became of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from . import _work as work
from ._errors import ApiError, TidegateError
from ._transport import Transport, backoff, run, run_async
from ._work import Active, Job

Handler = Callable[[Job], Any]
AsyncHandler = Callable[[Job], Awaitable[Any]]
OnError = Callable[[BaseException], None]


# The events after which a request has a connection of its own.
CONNECTED = ("connect_tcp.complete", "start_tls.complete")
# How long the server may take to end the wait of a worker that hung up, in seconds.
HANGUP = 1.0


def shut_down(connection: socket.socket, how: int) -> None:
    """Shuts a connection down, encrypted or not, whoever reads from it. It may be closed."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, how)


def checked(concurrency: int) -> int:
    """A worker without room for a job would wait for ever."""
    if concurrency < 1:
        raise ValueError("concurrency must be at least 1")
    return concurrency


def ignore(_: BaseException) -> None:
    """The server is asked again."""


class Worker:
    """A worker with threads. `Client.worker` makes one."""

    def __init__(
        self,
        transport: Transport,
        http: httpx.Client,
        kinds: Mapping[str, Handler],
        concurrency: int,
        lease: float,
        on_error: OnError | None,
        own_transport: bool,
    ) -> None:
        self._transport = transport
        self._http = http
        self._kinds = kinds
        self._concurrency = checked(concurrency)
        self._lease = lease
        self._on_error = on_error or ignore
        # A transport of the caller's own is used for everything, and its waits are not cut short.
        self._own_transport = own_transport
        self._connection: Any = None
        self._active: dict[tuple[str, int], Active] = {}
        self._reports: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._stopped = False
        self._finished = False
        self._extend_now = False

    def run(self) -> None:
        """Works until `stop` is called, then until all jobs in progress are reported.

        Raises `ApiError` when the server refuses it: a wrong token, an unknown kind.
        """
        beside = (self._report, self._extend, self._watch)
        helpers = [threading.Thread(target=one, daemon=True) for one in beside]
        for helper in helpers:
            helper.start()
        try:
            if self._own_transport:
                self._take(self._http)
            else:
                with self._transport.connect() as polls:
                    self._take(polls)
        finally:
            with self._changed:
                self._changed.wait_for(lambda: not self._active)
                self._finished = True
                self._changed.notify_all()
            for helper in helpers:
                helper.join()

    def stop(self) -> None:
        """Takes no more: what comes from now on is given back unstarted. `run` returns when the jobs
        in progress have ended."""
        with self._changed:
            self._stopped = True
            self._hang_up()
            self._changed.notify_all()

    def _connected(self, event: str, details: Mapping[str, Any]) -> None:
        """Learns of the connection that takes wait on."""
        if event.endswith(CONNECTED):
            with self._changed:
                self._connection = details["return_value"]
                self._hang_up()

    def _hang_up(self) -> None:
        """Ends the wait for jobs of a worker that was stopped.

        At first only this side of the connection is closed, so that jobs on the way can be given
        back.
        """
        if not self._stopped or self._connection is None:
            return
        connection = self._connection.get_extra_info("socket")
        if isinstance(connection, socket.socket):
            shut_down(connection, socket.SHUT_WR)
            last = threading.Timer(HANGUP, shut_down, (connection, socket.SHUT_RDWR))
            last.daemon = True
            last.start()

    def _take(self, polls: httpx.Client) -> None:
        failures = 0
        extensions = {"trace": self._connected}
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or len(self._active) < self._concurrency)
                if self._stopped:
                    return
                free = self._concurrency - len(self._active)
            try:
                kinds = list(self._kinds)
                jobs = run(polls, work.take(self._transport, kinds, free, self._lease, extensions))
            except TidegateError as error:
                if self._stopped:
                    return
                if work.is_refusal(error):
                    raise
                self._on_error(error)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopped, backoff(failures, 0.0))
                failures += 1
                continue
            failures = 0
            with self._changed:
                if self._stopped:
                    self._reports += [work.returned(active) for active in jobs]
                    self._changed.notify_all()
                    return
                self._active |= {(active.job.id, active.fence): active for active in jobs}
                self._extend_now |= work.came_late(jobs, self._lease)
                self._changed.notify_all()
            for active in jobs:
                threading.Thread(target=self._execute, args=(active,), daemon=True).start()

    def _execute(self, active: Active) -> None:
        try:
            report = work.succeeded(active, self._kinds[active.job.kind](active.job))
        except BaseException as error:  # noqa: BLE001
            report = work.failed(active, error)
        with self._changed:
            del self._active[(active.job.id, active.fence)]
            self._reports.append(report)
            self._changed.notify_all()

    def _extend(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._finished or self._extend_now, self._lease / 3)
                if self._finished:
                    return
                self._extend_now = False
                held = list(self._active.values())
            if not held:
                continue
            try:
                for active in run(self._http, work.extend(self._transport, held, self._lease)):
                    active.job.stop.set()
            except TidegateError as error:
                self._on_error(error)

    def _watch(self) -> None:
        """Stops jobs when their leases are over, however long an extension takes."""
        with self._changed:
            while not self._finished:
                now = time.monotonic()
                held = [active for active in self._active.values() if not active.job.stop.is_set()]
                for active in held:
                    if active.until <= now:
                        active.job.stop.set()
                ends = [active.until - now for active in held if active.until > now]
                self._changed.wait(min(ends, default=None))

    def _report(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._reports or self._finished)
                if not self._reports:
                    return
                batch, self._reports = self._reports[: work.REPORTS], self._reports[work.REPORTS :]
            end = time.monotonic() + self._lease
            for part in work.split(batch):
                self._send(part, end)

    def _send(self, reports: list[dict[str, Any]], end: float) -> None:
        failures = 0
        while True:
            refused: list[tuple[dict[str, Any], ApiError]] = []
            try:
                reports, refused = run(self._http, work.settle(self._transport, reports))
            except TidegateError as error:
                self._on_error(error)
                if work.is_refusal(error):
                    return
            for report, refusal in refused:
                self._on_error(refusal)
                reports += work.replacement(report, refusal)
            if not reports or time.monotonic() >= end:
                return
            if not refused:
                time.sleep(backoff(failures, 0.0))
                failures += 1


class AsyncWorker:
    """A worker for asyncio. `AsyncClient.worker` makes one."""

    def __init__(
        self,
        transport: Transport,
        http: httpx.AsyncClient,
        kinds: Mapping[str, AsyncHandler],
        concurrency: int,
        lease: float,
        on_error: OnError | None,
    ) -> None:
        self._transport = transport
        self._http = http
        self._kinds = kinds
        self._concurrency = checked(concurrency)
        self._lease = lease
        self._on_error = on_error or ignore
        self._active: dict[tuple[str, int], tuple[Active, asyncio.Task[None]]] = {}
        self._reports: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._stopped = asyncio.Event()
        self._room = asyncio.Event()
        self._taken = asyncio.Event()
        self._extend_now = asyncio.Event()

    async def run(self) -> None:
        """Works until `stop` is called, then until all jobs in progress are reported.

        Raises `ApiError` when the server refuses it: a wrong token, an unknown kind.
        """
        reporting = asyncio.create_task(self._report())
        extending = asyncio.create_task(self._extend())
        watching = asyncio.create_task(self._watch())
        try:
            await self._take()
        finally:
            while self._active:
                self._room.clear()
                await self._room.wait()
            extending.cancel()
            watching.cancel()
            await self._reports.put(None)
            await asyncio.wait([reporting, extending, watching])

    def stop(self) -> None:
        """Takes no more. `run` returns when the jobs in progress have ended."""
        self._stopped.set()
        self._room.set()

    async def _take(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            free = self._concurrency - len(self._active)
            if free <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            taking = asyncio.create_task(
                run_async(self._http, work.take(self._transport, list(self._kinds), free, self._lease))
            )
            stopping = asyncio.create_task(self._stopped.wait())
            await asyncio.wait([taking, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not taking.done():
                taking.cancel()
                return
            try:
                jobs = taking.result()
            except TidegateError as error:
                if work.is_refusal(error) and not self._stopped.is_set():
                    raise
                self._on_error(error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), backoff(failures, 0.0))
                failures += 1
                continue
            failures = 0
            if self._stopped.is_set():
                for active in jobs:
                    await self._reports.put(work.returned(active))
                return
            for active in jobs:
                task = asyncio.create_task(self._execute(active))
                self._active[(active.job.id, active.fence)] = (active, task)
            self._taken.set()
            if work.came_late(jobs, self._lease):
                self._extend_now.set()

    async def _execute(self, active: Active) -> None:
        try:
            report = work.succeeded(active, await self._kinds[active.job.kind](active.job))
        except (Exception, asyncio.CancelledError) as error:
            report = work.failed(active, error)
        self._active.pop((active.job.id, active.fence), None)
        self._room.set()
        await self._reports.put(report)

    async def _extend(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._extend_now.wait(), self._lease / 3)
            self._extend_now.clear()
            held = [active for active, _ in self._active.values()]
            if not held:
                continue
            try:
                for active in await run_async(self._http, work.extend(self._transport, held, self._lease)):
                    self._cancel(active)
            except TidegateError as error:
                self._on_error(error)

    async def _watch(self) -> None:
        """Stops jobs when their leases are over, however long an extension takes."""
        while True:
            self._taken.clear()
            now = time.monotonic()
            held = [active for active, _ in self._active.values() if not active.job.stop.is_set()]
            for active in held:
                if active.until <= now:
                    self._cancel(active)
            ends = [active.until - now for active in held if active.until > now]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._taken.wait(), min(ends, default=None))

    def _cancel(self, active: Active) -> None:
        active.job.stop.set()
        if found := self._active.get((active.job.id, active.fence)):
            found[1].cancel()

    async def _report(self) -> None:
        is_last = False
        while not is_last:
            batch = [await self._reports.get()]
            while not self._reports.empty() and len(batch) < work.REPORTS:
                batch.append(self._reports.get_nowait())
            is_last = None in batch
            reports = [one for one in batch if one is not None]
            end = time.monotonic() + self._lease
            for part in work.split(reports):
                await self._send(part, end)

    async def _send(self, reports: list[dict[str, Any]], end: float) -> None:
        failures = 0
        while True:
            refused: list[tuple[dict[str, Any], ApiError]] = []
            try:
                reports, refused = await run_async(self._http, work.settle(self._transport, reports))
            except TidegateError as error:
                self._on_error(error)
                if work.is_refusal(error):
                    return
            for report, refusal in refused:
                self._on_error(refusal)
                reports += work.replacement(report, refusal)
            if not reports or time.monotonic() >= end:
                return
            if not refused:
                await asyncio.sleep(backoff(failures, 0.0))
                failures += 1
