"""One request to the server, retried until it is answered.

What to send, when to retry and how long to wait is decided in generators, once for both clients: a
flow yields requests and pauses, and a client performs them. Every POST carries a key, so a retry
after a lost response is safe: the server recognizes it.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from ._errors import ApiError, NoResponseError, TidegateError

T = TypeVar("T")

BACKOFF = 0.2
BACKOFF_MAX = 5.0
# Statuses after which the same request may succeed.
RETRIED = frozenset({408, 425, 429, 502, 503, 504})
IN_PROGRESS = "IDEMPOTENCY_KEY_PROCESSING"


@dataclass(frozen=True)
class Request:
    """One request. `timeout` is that of one try; `wait` is how long the server was asked to wait."""

    method: str
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    timeout: float = 10.0
    # What httpx passes on to the connection.
    extensions: Mapping[str, Any] = field(default_factory=dict)
    # Whether the body of an error status is an answer all the same.
    is_answer: Callable[[Any], bool] = field(default=lambda body: False)


@dataclass(frozen=True)
class Pause:
    """A wait, in seconds."""

    seconds: float


Reply = httpx.Response | httpx.TransportError | None
Flow = Generator[Request | Pause, Reply, T]


class OutOfTimeError(TidegateError):
    """The flow had to end before a response came."""


def new_key() -> dict[str, str]:
    """The header that makes a POST safe to repeat."""
    return {"idempotency-key": str(uuid.uuid4())}


def segment(name: str) -> str:
    """A name as a part of a path.

    `.` and `..` are refused: URL libraries take them for steps of the path, however they are
    written, and another route would be called.
    """
    if name in (".", ".."):
        raise TidegateError(f'"{name}" cannot be a name in the path of a request.')
    return quote(name, safe="")


def check_address(server: str) -> str:
    """The address of a server, or what is wrong with it."""
    try:
        url = httpx.URL(server)
    except httpx.InvalidURL as error:
        raise TidegateError(f'"{server}" is not a valid server address: {error}.') from error
    if url.scheme not in ("http", "https") or not url.host:
        raise TidegateError(
            f'"{server}" is not a valid server address: it looks like http://127.0.0.1:7400.'
        )
    return server.rstrip("/")


def check_token(token: str | None) -> str | None:
    """The token without the line break of the file that it came from. An error must not show it."""
    token = token.strip() if token else None
    if token and not all("!" <= character <= "~" for character in token):
        raise TidegateError("The token has characters that a header cannot have.")
    return token


def backoff(attempt: int, retry_after: float) -> float:
    """The wait before the next try: a random part of a bound that doubles, after what was asked."""
    return retry_after + random.random() * min(BACKOFF_MAX, BACKOFF * 2.0**attempt)


@dataclass(frozen=True)
class Transport:
    """How to reach the server, and how often to try."""

    server: str
    token: str | None
    timeout: float
    retries: int

    @classmethod
    def configured(
        cls, server: str | None, token: str | None, timeout: float, retries: int
    ) -> Transport:
        """Fills in what the environment says."""
        server = server or os.environ.get("TIDEGATE_SERVER") or "http://127.0.0.1:7400"
        token = token or os.environ.get("TIDEGATE_TOKEN")
        return cls(check_address(server), check_token(token), timeout, retries)

    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def connect(self) -> httpx.Client:
        """A client with one connection of its own."""
        limits = httpx.Limits(max_connections=1)
        return httpx.Client(base_url=self.server, headers=self.headers(), limits=limits)

    def exchange(self, request: Request, until: float = math.inf) -> Flow[Any]:
        """Sends the request, again if necessary, and returns the JSON of its response.

        Raises `OutOfTimeError` when it would have to go on after `until`.
        """
        attempt = 0
        while True:
            timeout = min(self.timeout + request.wait, until - time.monotonic())
            if timeout <= 0:
                raise OutOfTimeError
            reply = yield replace(request, timeout=timeout)
            if isinstance(reply, httpx.Response) and (body := parse(reply)) is not None:
                if reply.is_success or request.is_answer(body):
                    return body
            error, may_retry, retry_after = explain(request, reply)
            if not may_retry or attempt >= self.retries:
                raise error
            pause = backoff(attempt, retry_after)
            if time.monotonic() + pause >= until:
                raise OutOfTimeError from error
            yield Pause(pause)
            attempt += 1


def explain(request: Request, reply: Reply) -> tuple[TidegateError, bool, float]:
    """The error that a reply is, whether the request may be sent again, and not before when."""
    if isinstance(reply, httpx.Response):
        error = ApiError(reply.status_code, parse(reply))
        # JSON that was cut short; a page of another server would be the same again.
        is_cut = reply.is_success and "json" in reply.headers.get("content-type", "")
        may_retry = reply.status_code in RETRIED or error.code == IN_PROGRESS or is_cut
        return error, may_retry, read_retry_after(reply.headers.get("retry-after"))
    reason = "not in time" if isinstance(reply, httpx.TimeoutException) else str(reply)
    lost = NoResponseError(f"No response to {request.method} {request.path}: {reason}")
    lost.__cause__ = reply
    return lost, True, 0.0


def parse(response: httpx.Response) -> Any:
    """The JSON of a response; `None` when it was cut short or does not come from Tidegate."""
    try:
        return response.json()
    except ValueError:
        return None


def read_retry_after(header: str | None) -> float:
    """`Retry-After` in seconds or as a date; 0 without one."""
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def advance(flow: Flow[T], reply: Reply) -> Request | Pause:
    """The next step of a flow. A response that it cannot read does not come from Tidegate."""
    try:
        return flow.send(reply)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if not isinstance(reply, httpx.Response):
            raise
        url = reply.request.url
        raise TidegateError(f"The response of {url} is not one of Tidegate's: {error!r}.") from error


def run(client: httpx.Client, flow: Flow[T]) -> T:
    """Performs a flow."""
    reply: Reply = None
    while True:
        try:
            step = advance(flow, reply)
        except StopIteration as end:
            value: T = end.value
            return value
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            reply = None
        else:
            try:
                reply = client.send(build(client, step))
            except httpx.TransportError as error:
                reply = error


async def run_async(client: httpx.AsyncClient, flow: Flow[T]) -> T:
    """Performs a flow without blocking."""
    reply: Reply = None
    while True:
        try:
            step = advance(flow, reply)
        except StopIteration as end:
            value: T = end.value
            return value
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            reply = None
        else:
            try:
                reply = await client.send(build(client, step))
            except httpx.TransportError as error:
                reply = error


def build(client: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
    """The request as httpx sends it."""
    return client.build_request(
        request.method,
        request.path,
        params=dict(request.params),
        json=request.body,
        headers=dict(request.headers),
        timeout=request.timeout,
        extensions=dict(request.extensions),
    )
