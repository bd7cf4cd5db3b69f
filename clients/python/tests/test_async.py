"""The same with asyncio, where it is not the same code."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from support import Cutter, Server, Upstream, serving

from tidegate import Accepted, AsyncClient, HttpRequest, LeaseLostError, Submission

REQUEST: HttpRequest = {"method": "PUT", "path": "/async", "body": {"n": 1}}
SUBMISSION: Submission = {"upstream": "echo", "group": "async", "request": REQUEST}


def test_operations(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url) as client:
            called = await asyncio.gather(*(client.call(**SUBMISSION) for _ in range(5)))
            assert [operation.body["got"] for operation in called] == [{"n": 1}] * 5
            accepted = await client.submit(upstream="echo", group="async", request=REQUEST, delay_ms=60_000)
            assert (await client.why(accepted.id)).waiting_for == "time"
            assert (await client.cancel(accepted.id)).state == "canceled"
            assert (await client.wait(accepted.id)).state == "canceled"
            assert (await client.get(accepted.id)).state == "canceled"
            (member,) = await client.batch([SUBMISSION])
            assert isinstance(member, Accepted)
            listed = [operation.id async for operation in client.list(group="async")]
            assert {accepted.id, member.id} <= set(listed) and len(listed) == 7

    asyncio.run(main())


def test_lost_responses(cutter: Cutter, upstream: Upstream) -> None:
    async def main() -> None:
        async with AsyncClient(cutter.url) as client:
            cutter.drop = 2
            request: HttpRequest = {"method": "PUT", "path": "/async-lost"}
            await client.call(upstream="echo", group="async-lost", request=request)
            cutter.drop = 1
            taken = await client.limits.check_and_consume("async", 4, capacity=10, refill_per_s=0.001)
            settled = await client.limits.settle("async", reserved=4, actual=3)
            assert (taken.tokens_remaining, round(settled.tokens_remaining)) == (6, 7)

    asyncio.run(main())
    assert (cutter.dropped, upstream.calls["/async-lost"]) == (3, 1)


def test_a_lease_is_renewed_and_excludes_others(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url) as client:
            async with client.leases.hold("async", ttl=1.5) as lease:
                await asyncio.sleep(2.3)
                with pytest.raises(LeaseLostError, match="Another"):
                    async with client.leases.hold("async"):
                        pass
            async with client.leases.hold("async") as following:
                assert following.fence == lease.fence + 1

    asyncio.run(main())


def test_work_is_canceled_when_its_lease_is_lost(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url) as client, httpx.AsyncClient() as operator:
            with pytest.raises(LeaseLostError, match="lost"):
                async with client.leases.hold("async-stolen", ttl=1.5) as lease:
                    path = f"{server.url}/v1/leases/async-stolen/release"
                    await operator.post(path, json={"token": f"lease_{lease.fence}"})
                    await asyncio.sleep(20)
                    pytest.fail("the block was not canceled")
            # The task itself goes on.
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_cancel_of_somebody_else_is_passed_on(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(None) as timeout, client.leases.hold("async-timeout"):
                    timeout.reschedule(asyncio.get_running_loop().time() + 0.1)
                    await asyncio.sleep(30)
            async with client.leases.hold("async-timeout"):
                """It was given back."""

    asyncio.run(main())


def test_a_lease_that_cannot_be_renewed_is_lost_in_time(upstream: Upstream) -> None:
    async def main() -> None:
        with serving(upstream) as mortal:
            async with AsyncClient(mortal.url) as client:
                with pytest.raises(LeaseLostError):
                    async with client.leases.hold("mortal", ttl=0.6):
                        mortal.kill()
                        since = time.monotonic()
                        await asyncio.sleep(30)
                assert time.monotonic() - since <= 1.6, "it went on trying"

    asyncio.run(main())


def test_events_resume_before_the_first(server: Server, cutter: Cutter) -> None:
    async def main() -> None:
        async def read() -> list[str | None]:
            states: list[str | None] = []
            async with AsyncClient(cutter.url) as cut:
                async for event in cut.events(group="first-events"):
                    states.append(event.state or event.type)
                    if event.state == "succeeded":
                        break
            return states

        reading = asyncio.create_task(read())
        while not cutter.has_streams():
            await asyncio.sleep(0.02)
        # What the stream opens with has arrived by then.
        await asyncio.sleep(0.2)
        cutter.cut_all()
        async with AsyncClient(server.url) as client:
            request: HttpRequest = {"method": "PUT", "path": "/e", "body": {"n": 1}}
            await client.call(upstream="echo", group="first-events", request=request)
        assert await asyncio.wait_for(reading, 30) == ["queued", "running", "succeeded"]

    asyncio.run(main())


def test_events_resume(server: Server, cutter: Cutter) -> None:
    async def main() -> None:
        ended: list[int] = []

        async def read() -> None:
            async with AsyncClient(cutter.url) as cut:
                async for event in cut.events(group="async-events", results=True):
                    if event.state == "succeeded" and event.result is not None:
                        ended.append(event.result.body["got"]["n"])
                    if ended[-1:] == [2]:
                        return

        async with AsyncClient(server.url) as client:

            async def call(n: int) -> None:
                request: HttpRequest = {"method": "PUT", "path": "/e", "body": {"n": n}}
                await client.call(upstream="echo", group="async-events", request=request)

            reading = asyncio.create_task(read())
            while not ended:
                await call(0)
                await asyncio.sleep(0.02)
            await call(1)
            cutter.cut_all()
            await call(2)
            await asyncio.wait_for(reading, 30)
        assert [n for n in ended if n] == [1, 2]

    asyncio.run(main())
