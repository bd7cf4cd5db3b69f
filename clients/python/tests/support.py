"""A real server, an upstream that counts, and a cutter between client and server."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

# The program under test.
BINARY = os.environ.get("TIDEGATE_BIN", "tidegate")


class Handler(BaseHTTPRequestHandler):
    """Hands every request to the owner of its server."""

    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        owner: Any = self.server
        owner.owner.answer(self, self.rfile.read(length))

    do_GET = do_POST = do_PUT = answer

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class Owner(Protocol):
    """Who answers."""

    def answer(self, handler: Handler, body: bytes) -> None: ...


class OwnedServer(ThreadingHTTPServer):
    """A server that knows who answers, on a port of the system's choice."""

    daemon_threads = True

    def __init__(self, owner: Owner) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.owner = owner
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Upstream:
    """An API that echoes.

    `/refuse` is a 422, `/hang` drops the connection without a response, `?ms=` delays the response.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.server = OwnedServer(self)
        self.url = self.server.url

    def answer(self, handler: Handler, body: bytes) -> None:
        url = urlsplit(handler.path)
        self.calls[url.path] += 1
        if url.path == "/hang":
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        time.sleep(int(parse_qs(url.query).get("ms", ["0"])[0]) / 1_000)
        text = json.dumps({"path": url.path, "got": json.loads(body) if body else None}).encode()
        handler.send_response(422 if url.path == "/refuse" else 200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)


class Cutter:
    """Passes requests on, and drops the responses of some after the server has handled them."""

    def __init__(self, target: str) -> None:
        self.drop = 0
        self.dropped = 0
        self._target = urlsplit(target).netloc
        self._streams: list[socket.socket] = []
        self.server = OwnedServer(self)
        self.url = self.server.url

    def has_streams(self) -> bool:
        """Whether a stream of events passes."""
        return bool(self._streams)

    def cut_all(self) -> None:
        """Breaks every stream."""
        for stream in self._streams:
            stream.shutdown(socket.SHUT_RDWR)
        self._streams.clear()

    def answer(self, handler: Handler, body: bytes) -> None:
        onward = http.client.HTTPConnection(self._target)
        onward.request(handler.command, handler.path, body, dict(handler.headers.items()))
        response = onward.getresponse()
        handler.close_connection = True
        if self.drop > 0:
            self.drop -= 1
            self.dropped += 1
            response.read()
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() != "transfer-encoding":
                handler.send_header(name, value)
        handler.send_header("connection", "close")
        handler.end_headers()
        if handler.path.startswith("/v1/events"):
            self._streams.append(handler.connection)
        while part := response.read1():
            handler.wfile.write(part)


class Server:
    """`tidegate serve` in a folder of its own."""

    def __init__(self, folder: Path, upstream: Upstream, more: str, env: dict[str, str]) -> None:
        self._folder, self._upstream, self._more, self._env = folder, upstream, more, env
        self.url = "http://127.0.0.1:0"
        self._start()

    def _start(self) -> None:
        config = self._folder / "tidegate.toml"
        address = self.url.removeprefix("http://")
        config.write_text(
            f'[server]\nlisten = "{address}"\n[store]\nurl = "file:{self._folder}/data"\n'
            f'[[upstream]]\nname = "echo"\nbase_url = "{self._upstream.url}"\n{self._more}'
        )
        command = ["serve", "--config", str(config), "--log-level", "warn"]
        self._process, self.url = start(command, r'tidegate serves ([^\s"]+)', self._env)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def kill_and_restart(self) -> None:
        """The same server again, under the same address."""
        self.kill()
        self._start()


@contextmanager
def serving(upstream: Upstream, more: str = "", **env: str) -> Iterator[Server]:
    """A server with this upstream, as `echo`, and with more configuration."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), upstream, more, env)
        try:
            yield server
        finally:
            server.kill()


def start(command: list[str], address: str, env: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """Starts the program and waits for its address."""
    # The server reads TIDEGATE_… as its own settings.
    rest = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    process = subprocess.Popen(
        [BINARY, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**rest, **env},
        text=True,
    )
    assert process.stderr is not None
    talk = ""
    for line in process.stderr:
        talk += line
        if found := re.search(address, line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, found[1].rstrip("/")
    raise AssertionError(f"It does not serve: {talk}")
