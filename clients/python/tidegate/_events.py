"""Server-sent events, resumed after a broken connection."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from ._errors import ApiError, NoResponseError
from ._transport import Transport, backoff, parse
from ._types import Fault, Result, read_fault, read_result, read_time

# The server sends at least a comment in this time.
SILENCE_MAX = 45.0


@dataclass(frozen=True)
class Event:
    """A change. `type` is `operation`, `group`, `limit`, or `reset`: some were missed.

    `state`, `kind`, `attempt`, `result` and `fault` are of an operation, `now` of a group or limit.
    """

    type: str
    event_id: str | None
    at: datetime | None
    id: str | None
    group: str | None
    limit: str | None
    state: str | None
    kind: str | None
    attempt: int | None
    now: str | None
    result: Result | None
    fault: Fault | None


def read_event(type: str, event_id: str | None, wire: Mapping[str, Any]) -> Event:
    """Parses an event."""
    names = ("id", "group", "limit", "state", "kind", "attempt", "now")
    result, fault = wire.get("result"), wire.get("fault")
    return Event(
        type=type,
        event_id=event_id,
        at=read_time(wire.get("at")),
        result=None if result is None else read_result(result),
        fault=read_fault(fault) if fault else None,
        **{name: wire.get(name) for name in names},
    )


class Parser:
    """Makes events of lines. What is cut short is dropped."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def line(self, line: str) -> Event | str | None:
        """Takes a line; an empty one ends an event, or only says where the stream is."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data" and "data" in self._fields:
                value = f"{self._fields['data']}\n{value}"
            self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return fields.get("id")
        return read_event(fields.get("event", ""), fields.get("id"), json.loads(fields["data"]))


class Connections:
    """Where a stream is, and whether to connect again."""

    def __init__(self, transport: Transport, params: Mapping[str, str | bool | None], last: str | None):
        self._transport = transport
        self._params = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in params.items()
            if value is not None
        }
        self._last = last
        self._failures = 0

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The request for the next stream."""
        headers = {"accept": "text/event-stream"}
        if self._last is not None:
            headers["last-event-id"] = self._last
        timeout = httpx.Timeout(self._transport.timeout, read=SILENCE_MAX)
        return http.build_request(
            "GET", "/v1/events", params=self._params, headers=headers, timeout=timeout
        )

    def heard(self, heard: Event | str | None) -> Event | None:
        """Remembers where to resume; returns the event, if it is one."""
        if heard is None:
            return None
        self._failures = 0
        if isinstance(heard, str):
            self._last = heard or self._last
            return None
        self._last = heard.event_id or self._last
        return heard

    def failed(self, error: ApiError | httpx.TransportError | None) -> float:
        """How long to wait before connecting again; raises what would only fail again."""
        is_final = isinstance(error, ApiError) and error.status < 500 and error.status != 429
        if error is not None and (is_final or self._failures >= self._transport.retries):
            if isinstance(error, ApiError):
                raise error
            raise NoResponseError(f"The events ended: {error}") from error
        self._failures += 1
        return backoff(self._failures - 1, 0.0)


def read_events(http: httpx.Client, connections: Connections) -> Iterator[Event]:
    """Events, from one connection after the other."""
    while True:
        error: ApiError | httpx.TransportError | None = None
        parser = Parser()
        try:
            response = http.send(connections.request(http), stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise ApiError(response.status_code, parse(response))
                for line in response.iter_lines():
                    if event := connections.heard(parser.line(line)):
                        yield event
            finally:
                response.close()
        except (ApiError, httpx.TransportError) as broken:
            error = broken
        time.sleep(connections.failed(error))


async def read_events_async(http: httpx.AsyncClient, connections: Connections) -> AsyncIterator[Event]:
    """Events, from one connection after the other."""
    while True:
        error: ApiError | httpx.TransportError | None = None
        parser = Parser()
        try:
            response = await http.send(connections.request(http), stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise ApiError(response.status_code, parse(response))
                async for line in response.aiter_lines():
                    if event := connections.heard(parser.line(line)):
                        yield event
            finally:
                await response.aclose()
        except (ApiError, httpx.TransportError) as broken:
            error = broken
        await asyncio.sleep(connections.failed(error))
