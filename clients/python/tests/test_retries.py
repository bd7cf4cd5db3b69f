"""When a request is sent again, by a transport of the test's own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import httpx
import pytest

from tidegate import Client, NoResponseError, TidegateError

Step = Callable[[], httpx.Response]


class Script(httpx.BaseTransport):
    """Gives these responses in turn, the last one again and again, and remembers what was sent."""

    def __init__(self, *steps: Step) -> None:
        self._steps = steps
        self.keys: list[str] = []
        self.times: list[float] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(json.loads(request.read())["dedupe_key"])
        self.times.append(time.monotonic())
        return self._steps[min(len(self.keys), len(self._steps)) - 1]()


def accepted() -> httpx.Response:
    return httpx.Response(202, json={"id": "op_1", "state": "queued", "deduplicated": True})


def busy() -> httpx.Response:
    return httpx.Response(503, json={"error": {}}, headers={"retry-after": "0.3"})


def broken() -> httpx.Response:
    raise httpx.ReadError("broken")


def submit(script: Script, retries: int = 7) -> None:
    with Client("http://tidegate", transport=script, retries=retries) as client:
        client.submit(upstream="echo", group="g", request={"method": "PUT", "path": "/"})


def test_retry_after_is_waited_out_and_every_try_has_the_same_key() -> None:
    script = Script(busy, busy, accepted)
    submit(script)
    first, second, third = script.times
    assert second - first >= 0.3 and third - second >= 0.3, "not before the server said"
    assert len(set(script.keys)) == 1


def test_two_calls_never_share_a_key() -> None:
    script = Script(accepted)
    submit(script)
    submit(script)
    assert len(set(script.keys)) == 2


def test_tries_are_bounded_and_what_cannot_succeed_is_not_tried_again() -> None:
    lost = Script(broken)
    with pytest.raises(NoResponseError):
        submit(lost, retries=2)
    assert len(lost.keys) == 3
    refused = Script(lambda: httpx.Response(400, json={"error": {"code": "TG0001"}}))
    with pytest.raises(TidegateError, match="TG0001"):
        submit(refused)
    assert len(refused.keys) == 1


def test_a_key_that_is_still_in_progress_is_waited_for() -> None:
    body = {"detail": "…", "error_code": "IDEMPOTENCY_KEY_PROCESSING", "idempotency_key": "k"}
    script = Script(lambda: httpx.Response(409, json=body), accepted)
    submit(script)
    assert len(script.keys) == 2
