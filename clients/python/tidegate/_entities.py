"""Entities that other modules own: read, answered for by a URL, and published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

import httpx

from ._transport import Flow, Request, Transport, run, run_async, segment
from ._types import read_time, write_time

EntityState = Literal["found", "not-found", "deferred", "unavailable"]
HydrationMode = Literal["existence", "partial", "full"]
AbsenceReason = Literal["deleted_or_never_existed", "inaccessible"]


@dataclass(frozen=True)
class Entity:
    """An entity, or why there is none.

    `unavailable` is temporary and says nothing about the entity. `stale` says whether the data is
    older, or less, than was asked for.
    """

    entity_type: str
    entity_id: str
    state: EntityState
    data: dict[str, Any] | None = None
    version: int | None = None
    as_of: datetime | None = None
    source_module: str | None = None
    stale: bool = False
    reason: str | None = None


@dataclass(frozen=True)
class Source:
    """Who answers for a type: a registered URL, or an upstream by configuration."""

    entity_type: str
    url: str | None = None
    upstream: str | None = None
    path: str | None = None


class EntityOptions(TypedDict, total=False):
    """How to read an entity; times in seconds.

    `wait` is the time for the owner in total, `max_age` the age of the oldest copy that will do, and
    `on_miss` what to do without an answer in time.
    """

    fields: Sequence[str]
    mode: HydrationMode
    wait: float
    max_age: float
    on_miss: Literal["fail-fast", "defer", "degrade"]
    tenant: str


class EventOptions(TypedDict, total=False):
    """What an event may say besides. `correlation_id` is that of the question it answers."""

    version: int
    as_of: datetime
    tenant: str
    correlation_id: str


def entity_path(entity_type: str, entity_id: str) -> str:
    """Where an entity is."""
    return f"/v1/entities/{segment(entity_type)}/{segment(entity_id)}"


def source_path(entity_type: str) -> str:
    """Where the source of a type is."""
    return f"/v1/sources/{segment(entity_type)}"


def is_answer(body: Any) -> bool:
    """404 and 503 may be answers about the entity, which are not retried."""
    return isinstance(body, dict) and "state" in body and "entity_id" in body


def read_entity(wire: Mapping[str, Any]) -> Entity:
    """Parses an entity."""
    return Entity(**{**wire, "as_of": read_time(wire.get("as_of"))})


def get(transport: Transport, entity_type: str, entity_id: str, options: EntityOptions) -> Flow[Entity]:
    """Reads an entity."""
    params: dict[str, str | int] = {}
    for name in ("mode", "on_miss", "tenant"):
        if name in options:
            params[name] = str(options[name])
    if "fields" in options:
        params["fields"] = ",".join(options["fields"])
    wait = options.get("wait", 0.0)
    if "wait" in options:
        params["wait_ms"] = round(wait * 1_000)
    if "max_age" in options:
        params["max_age_ms"] = round(options["max_age"] * 1_000)
    path = entity_path(entity_type, entity_id)
    wire = yield from transport.exchange(
        Request("GET", path, params=params, wait=wait, is_answer=is_answer)
    )
    return read_entity(wire)


def remove(transport: Transport, path: str, tenant: str | None) -> Flow[bool]:
    """Removes what is there."""
    params: dict[str, str | int] = {"tenant": tenant} if tenant else {}
    wire = yield from transport.exchange(Request("DELETE", path, params=params))
    return bool(wire["removed"])


def register(transport: Transport, entity_type: str, url: str) -> Flow[Source]:
    """Registers a source."""
    wire = yield from transport.exchange(Request("PUT", source_path(entity_type), body={"url": url}))
    return Source(**wire)


def sources(transport: Transport) -> Flow[list[Source]]:
    """Lists all sources."""
    wire = yield from transport.exchange(Request("GET", "/v1/sources"))
    return [Source(**source) for source in wire["sources"]]


def publish(
    transport: Transport, event: str, payload: dict[str, Any], options: EventOptions
) -> Flow[bool]:
    """Publishes an event. Twice is the same as once."""
    payload = {name: value for name, value in payload.items() if value is not None}
    if "version" in options:
        payload["version"] = options["version"]
    if "as_of" in options:
        payload["as_of"] = write_time(options["as_of"])
    body: dict[str, Any] = {"event": event, "payload": payload}
    if "tenant" in options:
        body["tenant"] = options["tenant"]
    if "correlation_id" in options:
        body["correlation_id"] = options["correlation_id"]
    wire = yield from transport.exchange(Request("POST", "/v1/entities/events", body=body))
    return bool(wire["received"])


def updated(
    transport: Transport,
    names: tuple[str, str, str],
    data: Mapping[str, Any],
    mode: HydrationMode | None,
    options: EventOptions,
) -> Flow[bool]:
    """Publishes a change; `names` are the type, the id, and who says so."""
    entity_type, entity_id, source_module = names
    payload = {
        "entity_type": entity_type,
        "entity_id": entity_id,
        "source_module": source_module,
        "data": dict(data),
        "hydration_mode": mode,
        "fields": sorted(data) if mode == "partial" else None,
    }
    return publish(transport, "entity/updated", payload, options)


def not_found(
    transport: Transport, names: tuple[str, str, str], reason: AbsenceReason, options: EventOptions
) -> Flow[bool]:
    """Publishes an absence; `names` are the type, the id, and who says so."""
    entity_type, entity_id, source_module = names
    payload = {
        "entity_type": entity_type,
        "entity_id": entity_id,
        "source_module": source_module,
        "reason": reason,
    }
    return publish(transport, "entity/not-found", payload, options)


class Entities:
    """Entities of other modules. `Client.entities` has one."""

    def __init__(self, transport: Transport, http: httpx.Client) -> None:
        self._transport = transport
        self._http = http

    def get(self, entity_type: str, entity_id: str, **options: Unpack[EntityOptions]) -> Entity:
        """Reads an entity: from the server's copy, or from its owner, who is asked once for all."""
        return run(self._http, get(self._transport, entity_type, entity_id, options))

    def forget(self, entity_type: str, entity_id: str, *, tenant: str | None = None) -> bool:
        """Removes the server's copy, if something wrong was published; the next reader asks."""
        return run(self._http, remove(self._transport, entity_path(entity_type, entity_id), tenant))

    def register(self, entity_type: str, url: str) -> Source:
        """Registers the URL that answers for a type.

        It gets a POST with the envelope of `entity/unknown` and answers 200 with that of
        `entity/updated` or `entity/not-found`, or 202 and publishes later.
        """
        return run(self._http, register(self._transport, entity_type, url))

    def unregister(self, entity_type: str) -> bool:
        """Removes the source of a type; `False` when there was none."""
        return run(self._http, remove(self._transport, source_path(entity_type), None))

    def sources(self) -> list[Source]:
        """All sources of this node."""
        return run(self._http, sources(self._transport))

    def publish_updated(
        self,
        entity_type: str,
        entity_id: str,
        data: Mapping[str, Any],
        *,
        source_module: str,
        mode: HydrationMode | None = None,
        **options: Unpack[EventOptions],
    ) -> bool:
        """Publishes an entity after a change, or as an answer. `False` when no one received it.

        `mode` says how much `data` is: everything, unless it says otherwise.
        """
        names = (entity_type, entity_id, source_module)
        return run(self._http, updated(self._transport, names, data, mode, options))

    def publish_not_found(
        self,
        entity_type: str,
        entity_id: str,
        *,
        source_module: str,
        reason: AbsenceReason = "deleted_or_never_existed",
        **options: Unpack[EventOptions],
    ) -> bool:
        """Publishes that there is no such entity. `False` when no one received it."""
        names = (entity_type, entity_id, source_module)
        return run(self._http, not_found(self._transport, names, reason, options))


class AsyncEntities:
    """Entities of other modules. `AsyncClient.entities` has one; its methods are those of `Entities`."""

    def __init__(self, transport: Transport, http: httpx.AsyncClient) -> None:
        self._transport = transport
        self._http = http

    async def get(self, entity_type: str, entity_id: str, **options: Unpack[EntityOptions]) -> Entity:
        """Reads an entity."""
        return await run_async(self._http, get(self._transport, entity_type, entity_id, options))

    async def forget(self, entity_type: str, entity_id: str, *, tenant: str | None = None) -> bool:
        """Removes the server's copy; the next reader asks."""
        flow = remove(self._transport, entity_path(entity_type, entity_id), tenant)
        return await run_async(self._http, flow)

    async def register(self, entity_type: str, url: str) -> Source:
        """Registers the URL that answers for a type."""
        return await run_async(self._http, register(self._transport, entity_type, url))

    async def unregister(self, entity_type: str) -> bool:
        """Removes the source of a type; `False` when there was none."""
        return await run_async(self._http, remove(self._transport, source_path(entity_type), None))

    async def sources(self) -> list[Source]:
        """All sources of this node."""
        return await run_async(self._http, sources(self._transport))

    async def publish_updated(
        self,
        entity_type: str,
        entity_id: str,
        data: Mapping[str, Any],
        *,
        source_module: str,
        mode: HydrationMode | None = None,
        **options: Unpack[EventOptions],
    ) -> bool:
        """Publishes an entity after a change, or as an answer."""
        names = (entity_type, entity_id, source_module)
        return await run_async(self._http, updated(self._transport, names, data, mode, options))

    async def publish_not_found(
        self,
        entity_type: str,
        entity_id: str,
        *,
        source_module: str,
        reason: AbsenceReason = "deleted_or_never_existed",
        **options: Unpack[EventOptions],
    ) -> bool:
        """Publishes that there is no such entity."""
        names = (entity_type, entity_id, source_module)
        return await run_async(self._http, not_found(self._transport, names, reason, options))
