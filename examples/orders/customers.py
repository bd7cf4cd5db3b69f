"""The service that owns customers, in Python, on NATS, with the standard library only.

    python3 customers.py nats://127.0.0.1:4222

It answers questions about customers. A line on its standard input saves a customer and announces
it: `c-7 Ada London`. With `quietly` before it, the announcement is lost.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from typing import Any
from urllib.parse import quote, urlsplit

MODULE = "customers"
QUESTIONS = "tidegate.entities.questions.*.customer"
ANSWERS = "tidegate.entities.answers.{tenant}.customer"
# The tenant of this example.
TENANT = "acme"


class Nats:
    """As much of the protocol of NATS as this service needs: PUB, SUB, PING."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._socket = socket.create_connection((place.hostname or "127.0.0.1", place.port or 4222))
        self._lines = self._socket.makefile("rb")
        self._sending = threading.Lock()
        self._lines.readline()  # INFO
        self._send(b'CONNECT {"verbose":false,"pedantic":false,"name":"customers"}\r\n')

    def _send(self, frame: bytes) -> None:
        with self._sending:
            self._socket.sendall(frame)

    def publish(self, subject: str, message: dict[str, Any]) -> None:
        payload = json.dumps(message).encode()
        self._send(f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\n")

    def subscribe(self, subject: str) -> None:
        """Returns once the server has confirmed it."""
        self._send(f"SUB {subject} 1\r\nPING\r\n".encode())
        while self._lines.readline().strip() != b"PONG":
            pass

    def messages(self) -> Any:
        """What arrives, until the server is gone."""
        while line := self._lines.readline():
            words = line.split()
            if words[:1] == [b"PING"]:
                self._send(b"PONG\r\n")
            elif words[:1] == [b"MSG"]:
                payload = self._lines.read(int(words[-1]))
                self._lines.readline()
                yield json.loads(payload)


class Customers:
    """The database: fields and version by id."""

    def __init__(self, nats: Nats) -> None:
        self._nats = nats
        self._rows: dict[str, tuple[dict[str, str], int]] = {"c-7": ({"name": "Ada", "city": "London"}, 1)}

    def save(self, id: str, name: str, city: str, *, announce: bool) -> None:
        version = self._rows.get(id, ({}, 0))[1] + 1
        self._rows[id] = ({"name": name, "city": city}, version)
        if announce:
            self._send("entity/updated", TENANT, self._found(id), None)

    def answer(self, question: dict[str, Any]) -> None:
        asked = question["payload"]
        id = asked["entity_id"]
        tenant, correlation_id = question.get("tenant", "default"), question["correlation_id"]
        if id in self._rows and tenant == TENANT:
            self._send("entity/updated", tenant, self._found(id, asked), correlation_id)
        else:
            payload = {**self._about(id), "reason": "deleted_or_never_existed"}
            self._send("entity/not-found", tenant, payload, correlation_id)

    def _about(self, id: str) -> dict[str, Any]:
        return {"entity_type": "customer", "entity_id": id, "source_module": MODULE}

    def _found(self, id: str, asked: dict[str, Any] | None = None) -> dict[str, Any]:
        data, version = self._rows[id]
        mode = asked["hydration_mode"] if asked else "full"
        about = {**self._about(id), "version": version, "hydration_mode": mode}
        if mode == "existence":
            return {**about, "data": {}}
        if asked and mode == "partial":
            fields = asked["fields"]
            kept = {name: value for name, value in data.items() if name in fields}
            return {**about, "data": kept, "fields": fields}
        return {**about, "data": data}

    def _send(self, event: str, tenant: str, payload: dict[str, Any], correlation_id: str | None) -> None:
        message = {"event": event, "schema_version": 1, "tenant": tenant, "payload": payload}
        if correlation_id is not None:
            message["correlation_id"] = correlation_id
        # Of a tenant, only letters, digits, - and _ stay as they are.
        encoded = quote(tenant, safe="").replace(".", "%2E").replace("~", "%7E")
        self._nats.publish(ANSWERS.format(tenant=encoded), message)


def main() -> None:
    nats = Nats(sys.argv[1])
    customers = Customers(nats)
    nats.subscribe(QUESTIONS)
    print("customers answers", flush=True)

    def save_lines() -> None:
        for line in sys.stdin:
            words = line.split()
            announce = words[:1] != ["quietly"]
            row = words if announce else words[1:]
            if len(row) != 3:
                print("a customer is: ID NAME CITY", flush=True)
                continue
            id, name, city = row
            customers.save(id, name, city, announce=announce)
            print(f"saved {id}", flush=True)

    threading.Thread(target=save_lines, daemon=True).start()
    for message in nats.messages():
        customers.answer(message)


if __name__ == "__main__":
    main()
