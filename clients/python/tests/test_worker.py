"""Workers: jobs in order, retries, cancels, and servers that are killed."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support import Server, Upstream, serving

from tidegate import (
    Alternative,
    ApiError,
    AsyncClient,
    Awaiting,
    Client,
    Job,
    JobError,
    OperationFailedError,
    Worker,
)
from tidegate import _work as work

KINDS = """
[[kind]]
name = "resize"
worker = "remote"
[[kind]]
name = "scan"
worker = "remote"
"""


@pytest.fixture(scope="module")
def workplace(upstream: Upstream) -> Iterator[Server]:
    with serving(upstream, KINDS) as server:
        yield server


def running(worker: Worker) -> threading.Thread:
    thread = threading.Thread(target=worker.run)
    thread.start()
    return thread


def test_jobs(workplace: Server) -> None:
    seen: list[tuple[int, int]] = []

    def resize(job: Job) -> object:
        seen.append((job.payload["n"], job.attempt))
        if job.payload["n"] == 3:
            raise JobError("failed", "no such image", fault_class="not_found")
        if job.payload["n"] == 4:
            return {"not", "JSON"}
        if job.payload["n"] == 1 and job.attempt == 1:
            raise ValueError("not yet")
        return {"width": job.payload["n"]}

    with Client(workplace.url) as client:
        worker = client.worker({"resize": resize}, concurrency=4)
        thread = running(worker)
        ids = [client.submit(kind="resize", group="g", payload={"n": n}).id for n in range(3)]
        done = [client.wait(id) for id in ids]
        assert [one.body for one in done] == [{"width": 0}, {"width": 1}, {"width": 2}]
        assert seen == [(0, 1), (1, 1), (1, 2), (2, 1)]
        with pytest.raises(OperationFailedError, match="no such image"):
            client.call(kind="resize", group="g", payload={"n": 3}, timeout=20)
        with pytest.raises(OperationFailedError, match="is not JSON") as not_json:
            client.call(kind="resize", group="g", payload={"n": 4}, timeout=20)
        assert not_json.value.operation.fault is not None
        assert not_json.value.operation.fault.may_have_happened
        assert client.call(kind="resize", group="g", payload={"n": 5}, timeout=20).body == {"width": 5}
        # Its take waits for 20 s by now.
        time.sleep(0.2)
        worker.stop()
        late = client.submit(kind="resize", group="h", payload={"n": 9})
        thread.join(5)
        assert not thread.is_alive(), "an idle worker stops at once"
        assert seen[-1] == (5, 1) and client.get(late.id).attempt == 0
        client.cancel(late.id)


class LateJob(httpx.BaseTransport):
    """A server that hands out a job to a worker that was stopped meanwhile."""

    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.settled: list[dict[str, Any]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.read())
        if request.url.path.endswith("/settle"):
            self.settled += body["settlements"]
            return httpx.Response(200, json={"settlements": [{"applied": True}]})
        assert self.worker is not None
        self.worker.stop()
        job = {"id": "op_1", "fence": 7, "kind": "resize", "group": "g", "payload": 1, "attempt": 1}
        return httpx.Response(200, json={"claims": [job]})


def test_a_job_that_comes_after_the_stop_is_given_back() -> None:
    server, seen = LateJob(), list[object]()
    with Client("http://tidegate", transport=server) as client:
        server.worker = client.worker({"resize": seen.append})
        server.worker.run()
    assert server.settled == [{"id": "op_1", "fence": 7, "outcome": "returned"}]
    assert not seen


def test_reports_without_an_answer_are_sent_again_in_requests_that_fit() -> None:
    reports = [{"id": name} for name in "abcd"]
    unavailable, invalid = {"error": {"code": "TG0017"}}, {"error": {"code": "TG0002"}}
    assert work.unanswered([{"applied": True}, unavailable, None, invalid], reports) == reports[1:3]
    long = [{"result": "x" * (work.REPORTS_LENGTH // 2)} for _ in range(3)]
    assert work.split([reports[0], *long]) == [[reports[0], long[0]], [long[1]], [long[2]]]


def test_a_refused_report_is_replaced(workplace: Server) -> None:
    runs, errors = list[str](), list[BaseException]()

    def start(job: Job) -> Awaiting:
        runs.append(job.id)
        return Awaiting(external_id="j-1", memo="x" * 20_000)

    def throttled(job: Job) -> None:
        runs.append(job.id)
        raise JobError("throttled", "full", limit="nope")

    with Client(workplace.url) as client:
        worker = client.worker({"resize": start, "scan": throttled}, lease=1.0, on_error=errors.append)
        thread = running(worker)
        started = client.submit(kind="resize", group="refused", payload=1)
        full = client.submit(kind="scan", group="full", payload=1, max_attempts=1)
        for id in (started.id, full.id):
            ended = client.wait(id, timeout=20)
            assert ended.state == "failed" and ended.fault and "refused" in ended.fault.message, ended
            assert ended.fault.may_have_happened == (id == started.id)
        worker.stop()
        thread.join(10)
    assert sorted(runs) == sorted([started.id, full.id])
    assert {error.code for error in errors if isinstance(error, ApiError)} == {"TG0005", "TG0007"}, errors


class StrictServer(httpx.BaseTransport):
    """Gives two jobs out and refuses every request with a long report."""

    def __init__(self) -> None:
        self.settled: list[tuple[str, str]] = []
        self.jobs = [
            {"id": id, "fence": 7, "kind": "resize", "group": id, "payload": id, "attempt": 1}
            for id in ("op_1", "op_2")
        ]
        self.all_settled = threading.Event()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        if request.url.path.endswith("/take"):
            jobs, self.jobs = self.jobs, []
            if not jobs:
                self.all_settled.wait(10)
            return httpx.Response(200, json={"claims": jobs})
        reports = json.loads(body)["settlements"]
        if len(body) > 1_000:
            return httpx.Response(413, json={"error": {"code": "TG0005", "message": "too long"}})
        self.settled += [(one["id"], one["outcome"]) for one in reports]
        if len(self.settled) == 2:
            self.all_settled.set()
        return httpx.Response(200, json={"settlements": [{"applied": True}] * len(reports)})


def test_a_report_that_is_too_long_takes_no_other_with_it() -> None:
    server, errors, both = StrictServer(), list[BaseException](), threading.Barrier(2)

    def resize(job: Job) -> str:
        both.wait(5)
        return "x" * (2_000 if job.id == "op_1" else 1)

    with Client("http://tidegate", transport=server) as client:
        worker = client.worker({"resize": resize}, on_error=errors.append)
        thread = running(worker)
        assert server.all_settled.wait(10)
        worker.stop()
        thread.join(10)
    assert sorted(server.settled) == [("op_1", "failed"), ("op_2", "succeeded")]
    assert [str(error) for error in errors] == ["TG0005: too long"]


class HungServer(httpx.BaseTransport):
    """Gives one job out and answers no extension until the end."""

    def __init__(self) -> None:
        self.is_taken = False
        self.end = threading.Event()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/settle"):
            count = len(json.loads(request.read())["settlements"])
            return httpx.Response(200, json={"settlements": [{"applied": False}] * count})
        if request.url.path.endswith("/extend") or self.is_taken:
            self.end.wait(10)
            return httpx.Response(503, json={})
        self.is_taken = True
        job = {"id": "op_1", "fence": 7, "kind": "resize", "group": "g", "payload": 1, "attempt": 1}
        return httpx.Response(200, json={"claims": [job]})


def test_a_job_is_stopped_at_the_end_of_its_lease_while_an_extension_hangs() -> None:
    server, stopped_after = HungServer(), list[float]()

    def resize(job: Job) -> None:
        since = time.monotonic()
        assert job.stop.wait(8)
        stopped_after.append(time.monotonic() - since)
        server.end.set()

    with Client("http://tidegate", transport=server) as client:
        worker = client.worker({"resize": resize}, lease=0.9)
        thread = running(worker)
        assert server.end.wait(9)
        worker.stop()
        thread.join(10)
    assert stopped_after[0] < 5


def test_a_worker_has_room_for_a_job() -> None:
    with Client("http://tidegate") as client, pytest.raises(ValueError, match="at least 1"):
        client.worker({"resize": lambda job: None}, concurrency=0)


def test_a_job_of_a_long_poll_is_extended_at_once() -> None:
    now = time.monotonic()
    job = Job("op", "resize", "g", None, 1)
    assert work.came_late([work.Active(job, 7, now + 15)], 30.0)
    assert not work.came_late([work.Active(job, 7, now + 29)], 30.0)


def test_a_poll_that_is_stopped_passes_its_cancel_on_next_time() -> None:
    awaited = work.AwaitedJob("j-1", None, cancel_requested=False)
    poll = work.Active(Job("op", "resize", "g", None, 1, awaited), 7, 0.0, canceled=True)
    assert work.failed(poll, JobError("retry", "stopped"))["outcome"] == "returned"
    first = work.Active(Job("op", "resize", "g", None, 1), 7, 0.0, canceled=True)
    assert work.failed(first, JobError("retry", "stopped"))["outcome"] == "canceled"


def test_a_job_says_what_was_granted_and_a_failure_whom_it_counts_against() -> None:
    limits = ["provider:acme/health", "provider:acme/slots"]
    claim = {"id": "op", "kind": "generation", "group": "g", "payload": {}, "attempt": 1}
    assert work.read_job(claim).alternative is None
    job = work.read_job(claim | {"alternative": {"name": "acme/key-1", "limits": limits}})
    assert job.alternative == Alternative("acme/key-1", tuple(limits))
    active = work.Active(job, 7, 0.0)
    blamed = work.failed(active, JobError("retry", "full", blame=limits[:1], external_id="j-1", cost=3))
    assert (blamed["blame"], blamed["external_id"], blamed["cost"]) == (limits[:1], "j-1", 3)
    assert work.failed(active, JobError("retry", "full", blame=[]))["blame"] == []
    # A server of before does not know these fields.
    usual = work.failed(active, JobError("retry", "full"))
    assert not {"blame", "external_id", "memo", "cost"} & usual.keys()
    assert "cost" not in work.succeeded(active, Awaiting(external_id="j-1"))
    assert work.succeeded(active, Awaiting(external_id="j-1", cost=3))["cost"] == 3


def test_a_refusal_ends_the_worker(workplace: Server) -> None:
    with Client(workplace.url) as client, pytest.raises(ApiError, match="other"):
        client.worker({"other": lambda job: None}).run()


def test_async_jobs_are_canceled_and_awaited(workplace: Server) -> None:
    async def main() -> None:
        async with AsyncClient(workplace.url) as client:
            started = asyncio.Event()

            async def scan(job: Job) -> object:
                if job.payload == "slow":
                    started.set()
                    await asyncio.sleep(60)
                if job.awaited is None:
                    return Awaiting(external_id="j-1", memo=[1], after=0.05)
                return [job.awaited.external_id, job.awaited.memo]

            worker = client.worker({"scan": scan}, lease=1.0)
            running = asyncio.create_task(worker.run())
            done = await client.call(kind="scan", group="a", payload=1, timeout=20)
            assert done.body == ["j-1", [1]]
            slow = await client.submit(kind="scan", group="b", payload="slow")
            await started.wait()
            await client.cancel(slow.id)
            assert (await client.wait(slow.id, timeout=20)).state == "canceled"
            worker.stop()
            await asyncio.wait_for(running, 20)

    asyncio.run(main())


def test_a_worker_outlives_its_server(upstream: Upstream) -> None:
    with serving(upstream, KINDS) as server:

        async def main() -> None:
            async with AsyncClient(server.url) as client:
                release = asyncio.Event()
                attempts: list[int] = []

                async def resize(job: Job) -> object:
                    attempts.append(job.attempt)
                    await release.wait()
                    return job.payload

                worker = client.worker({"resize": resize}, lease=30.0)
                running = asyncio.create_task(worker.run())
                accepted = await client.submit(kind="resize", group="g", payload=7)
                while not attempts:
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.kill_and_restart)
                release.set()
                done = await client.wait(accepted.id, timeout=30)
                assert (done.state, done.body, attempts) == ("succeeded", 7, [1])
                worker.stop()
                await asyncio.wait_for(running, 20)

        begun = time.monotonic()
        asyncio.run(main())
        assert time.monotonic() - begun < 30
