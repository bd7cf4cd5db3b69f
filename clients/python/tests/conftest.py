"""One server and one upstream for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support import Cutter, Server, Upstream, serving

from tidegate import Client


@pytest.fixture(scope="session")
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture(scope="session")
def server(upstream: Upstream) -> Iterator[Server]:
    with serving(upstream) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


@pytest.fixture
def cutter(server: Server) -> Iterator[Cutter]:
    cutter = Cutter(server.url)
    yield cutter
    cutter.cut_all()
    cutter.server.shutdown()
