"""A name that one process holds at a time, renewed beside the work.

Time counts from before the server was asked, so that a holder stops before another can begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from ._errors import LeaseLostError, TidegateError
from ._transport import Flow, Pause, Request, Transport, new_key, run, run_async, segment


@dataclass(frozen=True)
class Claim:
    """A lease as the server granted it."""

    name: str
    token: str
    fence: int
    ttl: float
    until: float


def post(transport: Transport, name: str, verb: str, body: dict[str, Any], until: float) -> Flow[Any]:
    """Sends a body to a lease. Renewing and releasing twice is the same as once; acquiring is not."""
    path = f"/v1/leases/{segment(name)}/{verb}"
    headers = new_key() if verb == "acquire" else {}
    return transport.exchange(Request("POST", path, body=body, headers=headers), until)


def acquire(transport: Transport, name: str, ttl: float, wait: float) -> Flow[Claim]:
    """Takes a lease, waiting while another holds it."""
    end = time.monotonic() + wait
    pause = min(1.0, max(0.02, ttl / 10))
    while True:
        asked = time.monotonic()
        wire = yield from post(transport, name, "acquire", {"ttl_ms": round(ttl * 1_000)}, math.inf)
        if wire["held"]:
            return Claim(name, wire["token"], wire["fence"], ttl, asked + ttl)
        if time.monotonic() + pause > end:
            raise LeaseLostError(name, f"Another holds the lease {name}.")
        yield Pause(pause)


def renew(transport: Transport, claim: Claim, until: float) -> Flow[float]:
    """Renews a lease before it expires at `until`, and returns when it expires then."""
    asked = time.monotonic()
    body = {"token": claim.token, "ttl_ms": round(claim.ttl * 1_000)}
    try:
        wire = yield from post(transport, claim.name, "renew", body, until)
    except TidegateError as error:
        raise LeaseLostError(claim.name, f"The lease {claim.name} could not be renewed.") from error
    if not wire["held"]:
        raise LeaseLostError(claim.name, f"The lease {claim.name} was lost.")
    return asked + claim.ttl


def release(transport: Transport, claim: Claim) -> Flow[None]:
    """Gives a lease back. If the server cannot be told, the lease expires."""
    with contextlib.suppress(TidegateError):
        yield from post(
            transport, claim.name, "release", {"token": claim.token}, time.monotonic() + claim.ttl
        )


def next_renewal(claim: Claim, until: float) -> float:
    """How long until a lease is renewed: at a third of its time."""
    return max(0.0, until - claim.ttl * 2 / 3 - time.monotonic())


@dataclass(frozen=True)
class Lease:
    """A lease that is held.

    `fence` grows with every holder: pass it to what you write to, and let that refuse smaller ones.
    `lost` is set before the lease expires on the server.
    """

    name: str
    fence: int
    lost: threading.Event = field(default_factory=threading.Event)

    def raise_if_lost(self) -> None:
        """Call it between two steps of the work."""
        if self.lost.is_set():
            raise LeaseLostError(self.name, f"The lease {self.name} was lost.")


@dataclass(frozen=True)
class AsyncLease:
    """A lease that is held. The task that holds it is canceled when the lease is lost."""

    name: str
    fence: int


class Leases:
    """Leases. `Client.leases` has one."""

    def __init__(self, transport: Transport, http: httpx.Client) -> None:
        self._transport = transport
        self._http = http

    @contextmanager
    def hold(self, name: str, *, ttl: float = 30.0, wait: float = 0.0) -> Iterator[Lease]:
        """Holds a lease while its block runs, renewed by a thread; times in seconds.

        Raises `LeaseLostError` when another holds it for longer than `wait`, and at the end of the
        block when it was lost meanwhile.
        """
        claim = run(self._http, acquire(self._transport, name, ttl, wait))
        lease = Lease(name, claim.fence)
        done = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(claim, lease, done), daemon=True)
        renewing.start()
        try:
            yield lease
        finally:
            done.set()
            renewing.join()
            if not lease.lost.is_set():
                run(self._http, release(self._transport, claim))
        lease.raise_if_lost()

    def _renew(self, claim: Claim, lease: Lease, done: threading.Event) -> None:
        until = claim.until
        while not done.wait(next_renewal(claim, until)):
            try:
                until = run(self._http, renew(self._transport, claim, until))
            except LeaseLostError:
                lease.lost.set()
                return


class AsyncLeases:
    """Leases. `AsyncClient.leases` has one."""

    def __init__(self, transport: Transport, http: httpx.AsyncClient) -> None:
        self._transport = transport
        self._http = http

    @asynccontextmanager
    async def hold(self, name: str, *, ttl: float = 30.0, wait: float = 0.0) -> AsyncIterator[AsyncLease]:
        """Holds a lease while its block runs, renewed by a task; times in seconds.

        Raises `LeaseLostError` when another holds it for longer than `wait`, and when it was lost:
        then the block is canceled where it waits.
        """
        claim = await run_async(self._http, acquire(self._transport, name, ttl, wait))
        holder = asyncio.current_task()
        assert holder is not None
        cancels = holder.cancelling()
        lost: list[LeaseLostError] = []

        async def keep() -> None:
            until = claim.until
            try:
                while True:
                    await asyncio.sleep(next_renewal(claim, until))
                    until = await run_async(self._http, renew(self._transport, claim, until))
            except LeaseLostError as error:
                lost.append(error)
                holder.cancel()

        renewing = asyncio.create_task(keep())
        try:
            yield AsyncLease(name, claim.fence)
        except asyncio.CancelledError:
            # Ours, unless somebody else canceled the holder too.
            if lost and holder.cancelling() == cancels + 1:
                raise lost[0] from None
            raise
        finally:
            renewing.cancel()
            try:
                await asyncio.wait([renewing])
            except asyncio.CancelledError:
                # The block ended before our cancel reached it.
                if not lost:
                    raise
            if lost:
                holder.uncancel()
            else:
                await run_async(self._http, release(self._transport, claim))
        if lost:
            raise lost[0]
