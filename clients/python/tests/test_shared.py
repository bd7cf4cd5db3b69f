"""Buckets, leases and events against a real server."""

from __future__ import annotations

import threading
import time

import httpx
import pytest
from support import Cutter, Server, Upstream, serving

from tidegate import ApiError, Client, Event, Figures, HttpRequest, LeaseLostError

# Nothing comes back while a test looks.
STILL: Figures = {"capacity": 10, "refill_per_s": 0.001}


def test_tokens_are_taken_or_it_is_said_when_they_are_there(client: Client) -> None:
    first = client.limits.check_and_consume("mail/out", 7, capacity=10, refill_per_s=2)
    assert (first.allowed, first.delay_ms, first.tokens_remaining) == (True, 0, 3)
    second = client.limits.check_and_consume("mail/out", 7)
    assert not second.allowed and 0 < second.delay_ms <= 2_000
    with pytest.raises(ApiError) as costly:
        client.limits.check_and_consume("mail/out", 11)
    assert (costly.value.code, costly.value.status) == ("TG0006", 422)
    with pytest.raises(ApiError) as missing:
        client.limits.check_and_consume("new")
    assert missing.value.code == "TG0012"


def test_several_buckets_are_taken_together(client: Client) -> None:
    both = client.limits.check_and_consume("one", 1, **STILL, also=[{"name": "all", "cost": 9, **STILL}])
    assert (both.tokens_remaining, both.also) == (9, (1,))
    none = client.limits.check_and_consume("one", 1, also=[{"name": "all", "cost": 9}])
    assert (none.allowed, round(none.tokens_remaining)) == (False, 9)


def test_a_bucket_is_settled_and_follows_what_the_api_reports(client: Client) -> None:
    client.limits.check_and_consume("learned", 5, initial=STILL)
    settled = client.limits.settle("learned", reserved=5, actual=1, remaining=4, capacity=20)
    assert (round(settled.tokens_remaining), settled.capacity) == (4, 20)
    # What was learned stays: the first figures are for a bucket that does not exist.
    following = client.limits.check_and_consume("learned", 1, initial=STILL)
    assert (following.allowed, round(following.tokens_remaining)) == (True, 3)
    assert client.limits.settle("learned", reserved=0, actual=0).capacity == 20


def test_a_lost_response_takes_no_tokens_twice(cutter: Cutter) -> None:
    with Client(cutter.url) as cut:
        cutter.drop = 2
        taken = cut.limits.check_and_consume("cut", 4, **STILL)
        assert (taken.allowed, taken.tokens_remaining) == (True, 6)
        cutter.drop = 1
        settled = cut.limits.settle("cut", reserved=4, actual=2)
        assert (round(settled.tokens_remaining), cutter.dropped) == (8, 3)


def test_a_lease_has_one_holder_and_outlives_its_time_by_renewal(client: Client) -> None:
    with client.leases.hold("bulk-lock:acme", ttl=1.5) as lease:
        time.sleep(2.3)
        with pytest.raises(LeaseLostError, match="Another"), client.leases.hold("bulk-lock:acme"):
            pass
        lease.raise_if_lost()
    with client.leases.hold("bulk-lock:acme", wait=5) as following:
        assert following.fence > lease.fence


def test_a_lost_response_to_acquire_does_not_lock_the_caller_out(cutter: Cutter) -> None:
    cutter.drop = 1
    with Client(cutter.url) as cut, cut.leases.hold("lost/lease") as lease:
        assert (lease.fence, cutter.dropped) == (1, 1)


def test_work_learns_that_its_lease_is_lost(client: Client, server: Server) -> None:
    with pytest.raises(LeaseLostError, match="lost"), client.leases.hold("stolen", ttl=1.5) as lease:
        # An operator releases it; its token is no secret.
        path = f"{server.url}/v1/leases/stolen/release"
        assert httpx.post(path, json={"token": f"lease_{lease.fence}"}).json()["released"]
        assert lease.lost.wait(30)
        lease.raise_if_lost()


def test_a_lease_that_cannot_be_renewed_is_lost_before_it_expires(upstream: Upstream) -> None:
    with serving(upstream) as mortal, Client(mortal.url) as client, pytest.raises(LeaseLostError):
        with client.leases.hold("mortal", ttl=0.6) as lease:
            mortal.kill()
            assert lease.lost.wait(1.6), "it went on trying"


def test_events_resume_after_a_broken_connection_none_lost_and_none_twice(
    client: Client, cutter: Cutter
) -> None:
    seen: list[Event] = []
    ended: list[int] = []

    def call(number: int) -> None:
        request: HttpRequest = {"method": "PUT", "path": "/e", "body": {"number": number}}
        client.call(upstream="echo", group="events", request=request)

    def read() -> None:
        with Client(cutter.url) as cut:
            for event in cut.events(group="events", results=True):
                seen.append(event)
                if event.state == "succeeded" and event.result is not None:
                    ended.append(event.result.body["got"]["number"])
                if ended[-1:] == [3]:
                    return

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    # Only what happens from now on is sent, so the first call waits for the stream.
    while not ended:
        call(0)
        time.sleep(0.02)
    call(1)
    cutter.cut_all()
    call(2)
    call(3)
    reading.join(30)
    assert [number for number in ended if number] == [1, 2, 3]
    ids = [event.event_id for event in seen]
    assert len(set(ids)) == len(ids) and all(event.type == "operation" for event in seen)
