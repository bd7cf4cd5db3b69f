"""Entities against a real server, with an owner in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support import Cutter, Handler, OwnedServer, Upstream, serving

from tidegate import ApiError, AsyncClient, Client

SOURCE = '[[source]]\nentity_type = "page"\nupstream = "echo"\npath = "/pages/{id}"\n'


class Customers:
    """Owns customers: c-7 is there, no other is."""

    def __init__(self) -> None:
        self.questions = 0
        self.server = OwnedServer(self)
        self.url = f"{self.server.url}/hydrate"

    def answer(self, handler: Handler, body: bytes) -> None:
        self.questions += 1
        question: dict[str, Any] = json.loads(body)
        asked = question["payload"]
        about = {"entity_type": asked["entity_type"], "entity_id": asked["entity_id"], "source_module": "customers"}
        if asked["entity_id"] == "c-7":
            data = {"name": "Ada", "city": "London"}
            event, payload = "entity/updated", {**about, "data": data, "version": 3}
        else:
            event, payload = "entity/not-found", {**about, "reason": "deleted_or_never_existed"}
        answer = {"event": event, "correlation_id": question["correlation_id"], "payload": payload}
        text = json.dumps(answer).encode()
        handler.send_response(200)
        handler.send_header("content-length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)


@pytest.fixture(scope="module")
def url(upstream: Upstream) -> Iterator[str]:
    with serving(upstream, SOURCE) as server:
        yield server.url


def test_hyd_13_an_owner_is_registered_asked_once_and_its_answers_are_kept(url: str) -> None:
    customers = Customers()
    with Client(url) as client:
        absent = client.entities.get("customer", "c-7")
        assert (absent.state, absent.reason) == ("unavailable", "source-absent")
        assert client.entities.register("customer", customers.url).url == customers.url
        with ThreadPoolExecutor(20) as threads:
            for found in threads.map(lambda _: client.entities.get("customer", "c-7", wait=10), range(20)):
                assert (found.state, found.version, found.stale) == ("found", 3, False)
                assert found.data == {"name": "Ada", "city": "London"} and found.as_of is not None
        assert customers.questions == 1
        assert client.entities.get("customer", "c-7", fields=["city"]).data == {"city": "London"}
        for _ in range(2):
            missing = client.entities.get("customer", "a/b?c", wait=10)
            assert (missing.state, missing.reason) == ("not-found", "deleted_or_never_existed")
        assert customers.questions == 2, "not found is remembered"


def test_hyd_13_events_are_published_also_after_a_lost_response_and_a_copy_is_forgotten(url: str) -> None:
    cutter = Cutter(url)
    cutter.drop = 1
    with Client(cutter.url) as cut:
        data = {"name": "Eve"}
        assert cut.entities.publish_updated("customer", "c-9", data, source_module="customers", version=1)
    with Client(url) as client:
        while (found := client.entities.get("customer", "c-9")).state != "found":
            pass
        assert found.data == {"name": "Eve"}
        assert client.entities.forget("customer", "c-9")
        assert not client.entities.forget("customer", "c-9")
        assert client.entities.publish_not_found("customer", "c-9", source_module="customers", version=2)


def test_hyd_14_an_upstream_answers_by_configuration_and_stays(url: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            page = await client.entities.get("page", "7", wait=10)
            assert page.data is not None
            assert (page.state, page.data["path"], page.source_module) == ("found", "/pages/7", "echo")
            sources = await client.entities.sources()
            assert "echo" in [source.upstream for source in sources]
            with pytest.raises(ApiError) as refused:
                await client.entities.unregister("page")
            assert (refused.value.code, refused.value.field) == ("TG0002", "type")
            data = {"name": "Bob"}
            assert await client.entities.publish_updated("customer", "c-8", data, source_module="customers")
            assert await client.entities.publish_not_found("customer", "c-8", source_module="customers")
            await client.entities.forget("customer", "c-8")

    asyncio.run(main())
