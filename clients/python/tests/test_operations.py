"""Operations against a real server."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import Any, cast

import pytest
from support import Cutter, Server, Upstream, serving

from tidegate import (
    Accepted,
    ApiError,
    Client,
    HttpRequest,
    OperationFailedError,
    OutcomeUnknownError,
    Submission,
    WaitTimeoutError,
)


def put(path: str, body: object = None) -> HttpRequest:
    return {"method": "PUT", "path": path, "body": body if body is not None else {"sku": "a-1"}}


def to(path: str, **more: Any) -> Submission:
    return cast(Submission, {"upstream": "echo", "group": path, "request": put(path), **more})


def test_a_call_returns_the_operation_with_its_result(client: Client) -> None:
    operation = client.call(
        upstream="echo", group="orders", request=put("/orders"), deployment_id="d-1", max_attempts=3
    )
    assert operation.state == "succeeded"
    assert (operation.deployment_id, operation.max_attempts) == ("d-1", 3)
    assert operation.result is not None and operation.result.status == 200 and operation.result.json
    assert operation.body == {"path": "/orders", "got": {"sku": "a-1"}}
    assert isinstance(operation.finished_at, datetime) and operation.finished_at.tzinfo
    assert (operation.dedupe_key or "").startswith("call-")


def test_a_call_that_the_upstream_refuses_says_why(client: Client) -> None:
    with pytest.raises(OperationFailedError) as failed:
        client.call(**to("/refuse"))
    operation = failed.value.operation
    assert operation.fault is not None and operation.fault.kind == "validation"
    assert client.rerun(operation.id, reason="fixed").id == operation.id


def test_an_outcome_that_is_unknown_is_told_apart_and_resolved(client: Client) -> None:
    with pytest.raises(OutcomeUnknownError) as unknown:
        client.call(upstream="echo", group="hang", request={"method": "POST", "path": "/hang"})
    client.resolve(unknown.value.operation.id, "succeeded")
    resolved = client.wait(unknown.value.operation.id)
    assert (resolved.state, resolved.result, resolved.body) == ("succeeded", None, None)
    with pytest.raises(OutcomeUnknownError) as unknown:
        client.call(upstream="echo", group="hang", request={"method": "POST", "path": "/hang"})
    client.resolve(unknown.value.operation.id, "succeeded", result={"order": 7}, reason="seen")
    assert client.get(unknown.value.operation.id).body == {"order": 7}


def test_a_group_is_paused_and_resumed(client: Client) -> None:
    paused = client.pause("acme/7", by="anna", reason="price fix", create=True)
    assert (paused.name, paused.state, paused.depth) == ("acme/7", "paused", 0)
    assert client.resume("acme/7", reason="fixed").state == "idle"
    with pytest.raises(ApiError, match="TG0011"):
        client.pause("misspelled")


def test_a_job_that_ends_elsewhere_is_completed(client: Client) -> None:
    poll = {"path": "/jobs/{/got/sku}", "every_s": 30, "done": {"/state": ["done"]}}
    accepted = client.submit(**to("/job", completion={"timeout_s": 60, "poll": poll}))
    while client.why(accepted.id).waiting_for != "completion":
        time.sleep(0.02)
    done = client.complete(accepted.id, "succeeded", result={"file": "a.png"})
    assert (done.applied, done.operation.state) == (True, "succeeded")
    assert client.get(accepted.id).body == {"file": "a.png"}
    with pytest.raises(ApiError, match="TG0015"):
        client.complete(accepted.id, "failed", fault="too late", token="forged")


def test_a_call_that_takes_too_long_goes_on_and_is_found_again(client: Client, upstream: Upstream) -> None:
    with pytest.raises(WaitTimeoutError) as late:
        client.call(**to("/slow?ms=1500"), timeout=0.5)
    assert late.value.id is not None
    assert client.wait(late.value.id, timeout=30).state == "succeeded"
    assert upstream.calls["/slow"] == 1


def test_a_lost_response_is_asked_for_again_and_nothing_is_sent_twice(
    client: Client, cutter: Cutter, upstream: Upstream
) -> None:
    with Client(cutter.url) as cut:
        cutter.drop = 2
        accepted = cut.submit(**to("/lost-submit"))
        assert not accepted.deduplicated, "the client's own retry is no duplicate"
        cutter.drop = 2
        assert cut.call(**to("/lost-call")).state == "succeeded"
        cutter.drop = 1
        batch = cut.batch([to("/lost-batch"), to("/lost-batch")])
    assert cutter.dropped == 5
    for member in [accepted, *batch]:
        assert isinstance(member, Accepted)
        client.wait(member.id)
    counts = [upstream.calls[path] for path in ("/lost-submit", "/lost-call", "/lost-batch")]
    assert counts == [1, 1, 2]


def test_your_own_key_finds_the_first_operation(client: Client) -> None:
    first = client.submit(**to("/keyed", dedupe_key="order-1001"))
    second = client.submit(**to("/keyed", dedupe_key="order-1001"))
    assert (first.deduplicated, second.deduplicated, second.id) == (False, True, first.id)
    with pytest.raises(ApiError) as conflict:
        client.submit(**to("/other", dedupe_key="order-1001"))
    assert (conflict.value.code, conflict.value.status) == ("TG0009", 409)


def test_a_batch_says_of_each_member_what_became_of_it(client: Client) -> None:
    good, bad = client.batch([to("/b"), to("/b", upstream="nowhere")])
    assert isinstance(good, Accepted)
    assert isinstance(bad, ApiError) and (bad.code, bad.field) == ("TG0003", "upstream")


def test_an_error_has_its_code_title_field_detail_and_every_problem(client: Client) -> None:
    with pytest.raises(ApiError) as wrong:
        client.submit(**to("/x", max_attempts=0, delay_ms=-1))
    error = wrong.value
    assert (error.status, error.code, error.field) == (400, "TG0002", "max_attempts")
    assert error.detail == {"field": "max_attempts"}
    assert error.title and "max_attempts" in error.message
    assert [problem.field for problem in error.problems] == ["max_attempts", "delay_ms"]
    assert error.link == "/docs/errors/TG0002"


def test_a_waiting_operation_says_why_is_listed_and_is_canceled(client: Client) -> None:
    first = client.batch([to("/later", delay_ms=60_000) for _ in range(205)])[0]
    assert isinstance(first, Accepted)
    why = client.why(first.id)
    assert why.waiting_for == "time" and isinstance(why.until, datetime)
    listed = {operation.id for operation in client.list(group="/later", state=["waiting", "queued"])}
    assert len(listed) == 205, "every page is read"
    assert client.cancel(first.id, reason="wrong price").state == "canceled"
    assert client.get(first.id).state == "canceled"
    request = client.get(first.id).request
    assert request and (request["method"], request["path"]) == ("PUT", "/later")
    after = client.get(first.id).created_at
    assert first.id in {operation.id for operation in client.list(state="canceled", created_after=after)}


def test_a_call_survives_a_server_that_is_killed_and_comes_back(upstream: Upstream) -> None:
    with serving(upstream) as mortal, Client(mortal.url, retries=30) as client:
        states: list[str] = []
        call = threading.Thread(target=lambda: states.append(client.call(**to("/mortal?ms=150")).state))
        call.start()
        while not upstream.calls["/mortal"]:
            time.sleep(0.005)
        mortal.kill_and_restart()
        call.join(30)
        assert states == ["succeeded"]


def test_a_token_is_sent_and_its_absence_refused(upstream: Upstream) -> None:
    token = '[[token]]\nname = "t"\nvalue_env = "CLIENT_TOKEN"\nscopes = ["read", "write"]'
    with serving(upstream, token, CLIENT_TOKEN="a-token-of-the-test") as guarded:
        with Client(guarded.url, token="a-token-of-the-test") as client:
            assert client.call(**to("/guarded")).state == "succeeded"
        with Client(guarded.url, token="another") as stranger, pytest.raises(ApiError) as refused:
            stranger.submit(**to("/guarded"))
        assert (refused.value.code, refused.value.status) == ("TG0015", 401)


def test_the_server_is_found_in_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_SERVER", server.url)
    with Client() as client:
        assert client.call(**to("/environment")).state == "succeeded"
