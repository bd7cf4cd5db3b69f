"""When a request is sent again, by a transport of the test's own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import httpx
import pytest

from tidegate import ApiError, AsyncClient, Client, HttpRequest, NoResponseError, TidegateError

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


def test_a_key_that_is_none_is_no_key() -> None:
    script = Script(busy, accepted)
    with Client("http://tidegate", transport=script) as client:
        request: HttpRequest = {"method": "PUT", "path": "/"}
        # As a program has it that is not type-checked.
        client.submit(upstream="echo", group="g", request=request, dedupe_key=None)  # type: ignore[arg-type]
    assert len(script.keys) == 2 and len(set(script.keys)) == 1 and script.keys[0].startswith("call-")


def test_a_token_is_not_shown() -> None:
    with Client("http://tidegate", token="tg_secret\n", transport=Script(accepted)) as client:
        request: HttpRequest = {"method": "PUT", "path": "/"}
        assert client.submit(upstream="echo", group="g", request=request).id == "op_1"
    with pytest.raises(TidegateError, match="token") as refused:
        Client("http://tidegate", token="tg_secret\nx")
    assert "secret" not in str(refused.value)


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


@pytest.mark.parametrize("address", ["127.0.0.1:7400", "localhost:7400", "ftp://a", "http://", "tidegate"])
def test_an_address_without_a_server_is_refused_at_once(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TidegateError, match="is not a valid server address"):
        Client(address)
    monkeypatch.setenv("TIDEGATE_SERVER", address)
    with pytest.raises(TidegateError, match="is not a valid server address"):
        AsyncClient()


def answering(response: httpx.Response) -> Client:
    return Client("http://tidegate", transport=httpx.MockTransport(lambda _: response))


def test_a_response_of_another_server_is_named_as_such() -> None:
    page = httpx.Response(200, html="<p>Welcome</p>")
    moved = httpx.Response(301, headers={"location": "http://elsewhere"})
    for response in (page, moved, httpx.Response(404, json={"error": "not found"})):
        with answering(response) as client, pytest.raises(ApiError, match="not as Tidegate does"):
            client.get("op_1")
    bodies: list[object] = [{}, [], {"id": 7}]
    for body in bodies:
        with answering(httpx.Response(200, json=body)) as client:
            with pytest.raises(TidegateError, match="not one of Tidegate's"):
                client.get("op_1")


@pytest.mark.parametrize("name", [".", ".."])
def test_no_name_leaves_its_place_in_the_path(name: str) -> None:
    with answering(httpx.Response(200, json={})) as client:
        calls: list[Callable[[], object]] = [
            lambda: client.get(name),
            lambda: client.resume(name),
            lambda: client.entities.get(name, "operations"),
            lambda: client.entities.get("customer", name),
            lambda: client.entities.unregister(name),
            lambda: client.limits.check_and_consume(name),
            lambda: client.leases.hold(name).__enter__(),
        ]
        for call in calls:
            with pytest.raises(TidegateError, match="cannot be a name"):
                call()


def test_a_result_of_more_than_one_call_is_the_body() -> None:
    generation = {"results": [{"url": "/a.png"}]}
    data = {"id": "op_1", "state": "succeeded", "result": generation}
    text = f"event: operation\nid: 7\ndata: {json.dumps(data)}\n\n"
    with answering(httpx.Response(200, text=text)) as client:
        result = next(iter(client.events(results=True))).result
    assert result is not None
    assert (result.status, result.headers, result.body) == (None, {}, generation)
