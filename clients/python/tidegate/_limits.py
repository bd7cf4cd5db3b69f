"""Token buckets that any number of processes share, for calls that they make themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from ._errors import ApiError
from ._transport import Flow, Request, Transport, new_key, run, run_async, segment
from ._types import BucketCost, Figures

NO_SUCH_BUCKET = "TG0012"


@dataclass(frozen=True)
class Reservation:
    """Whether the tokens were taken, or when to ask again.

    `also` is what is left in the other buckets, in your order.
    """

    allowed: bool
    delay_ms: int
    tokens_remaining: float
    also: tuple[float, ...] = ()


@dataclass(frozen=True)
class Settled:
    """A bucket after it was settled."""

    tokens_remaining: float
    capacity: float
    refill_per_s: float


def post(transport: Transport, bucket: str, verb: str, body: dict[str, Any]) -> Flow[dict[str, Any]]:
    """Sends the fields that are there to a bucket."""
    path = f"/v1/buckets/{segment(bucket)}/{verb}"
    body = {name: value for name, value in body.items() if value is not None}
    wire: dict[str, Any] = yield from transport.exchange(
        Request("POST", path, body=body, headers=new_key())
    )
    return wire


def consume(
    transport: Transport,
    bucket: str,
    cost: float,
    figures: dict[str, Any],
    initial: Figures | None,
    also: Sequence[BucketCost] | None,
) -> Flow[Reservation]:
    """Takes tokens, or says when they will be there."""
    body = {"cost": cost, "with": also, **figures}
    try:
        wire = yield from post(transport, bucket, "reserve", body)
    except ApiError as error:
        if initial is None or error.code != NO_SUCH_BUCKET:
            raise
        wire = yield from post(transport, bucket, "reserve", {**body, **initial})
    also_left = tuple(wire.get("with", ()))
    return Reservation(wire["allowed"], wire["delay_ms"], wire["tokens_remaining"], also_left)


def settle(transport: Transport, bucket: str, body: dict[str, Any]) -> Flow[Settled]:
    """Corrects and teaches a bucket."""
    wire = yield from post(transport, bucket, "settle", body)
    return Settled(wire["tokens_remaining"], wire["capacity"], wire["refill_per_s"])


class Limits:
    """Buckets. `Client.limits` has one."""

    def __init__(self, transport: Transport, http: httpx.Client) -> None:
        self._transport = transport
        self._http = http

    def check_and_consume(
        self,
        bucket: str,
        cost: float = 1,
        *,
        capacity: float | None = None,
        refill_per_s: float | None = None,
        initial: Figures | None = None,
        also: Sequence[BucketCost] | None = None,
    ) -> Reservation:
        """Takes `cost` tokens from a bucket, or says when they will be there. It never waits.

        `initial` is for a bucket that does not exist yet; one that does keeps its own figures,
        which may be learned. `also` names up to 7 other buckets: taken from all of them, or none.
        """
        figures = {"capacity": capacity, "refill_per_s": refill_per_s}
        return run(self._http, consume(self._transport, bucket, cost, figures, initial, also))

    def settle(
        self,
        bucket: str,
        *,
        reserved: float,
        actual: float,
        remaining: float | None = None,
        capacity: float | None = None,
        refill_per_s: float | None = None,
    ) -> Settled:
        """Corrects what was taken by what it cost, and teaches the bucket what the API reported.

        The lower of `remaining` and the bucket's own level counts.
        """
        body = {"reserved": reserved, "actual": actual, "remaining": remaining}
        figures = {"capacity": capacity, "refill_per_s": refill_per_s}
        return run(self._http, settle(self._transport, bucket, {**body, **figures}))


class AsyncLimits:
    """Buckets. `AsyncClient.limits` has one; its methods are those of `Limits`."""

    def __init__(self, transport: Transport, http: httpx.AsyncClient) -> None:
        self._transport = transport
        self._http = http

    async def check_and_consume(
        self,
        bucket: str,
        cost: float = 1,
        *,
        capacity: float | None = None,
        refill_per_s: float | None = None,
        initial: Figures | None = None,
        also: Sequence[BucketCost] | None = None,
    ) -> Reservation:
        """Takes `cost` tokens from a bucket, or says when they will be there. It never waits."""
        figures = {"capacity": capacity, "refill_per_s": refill_per_s}
        flow = consume(self._transport, bucket, cost, figures, initial, also)
        return await run_async(self._http, flow)

    async def settle(
        self,
        bucket: str,
        *,
        reserved: float,
        actual: float,
        remaining: float | None = None,
        capacity: float | None = None,
        refill_per_s: float | None = None,
    ) -> Settled:
        """Corrects what was taken by what it cost, and teaches the bucket what the API reported."""
        body = {"reserved": reserved, "actual": actual, "remaining": remaining}
        figures = {"capacity": capacity, "refill_per_s": refill_per_s}
        return await run_async(self._http, settle(self._transport, bucket, {**body, **figures}))
