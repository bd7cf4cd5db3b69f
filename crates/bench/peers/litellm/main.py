# The load of `bench dispatch` through LiteLLM's router. The first line on stdin is its task; then it prints `ready`. With
# the next line the load begins. It prints its figures as JSON when every call has ended; the endpoints count the rest.

import asyncio
import json
import sys
import time

import litellm
from litellm import Router


def build(task):
    names = [f"endpoint-{number}" for number in range(len(task["bases"]))]
    models = [
        {
            "model_name": name,
            "litellm_params": {
                "model": "openai/flux",
                "api_base": f"{base}/v1",
                "api_key": "bench",
                "max_retries": 0,
            },
        }
        for name, base in zip(names, task["bases"])
    ]
    # The next endpoint is used at once. One that fails cools from its first error, for as long as ours does: without
    # `allowed_fails` the router cools no model of a single endpoint for its rate of errors.
    router = Router(
        model_list=models,
        fallbacks=[{names[0]: names[1:]}],
        num_retries=0,
        retry_after=0,
        allowed_fails=0,
        cooldown_time=task["cooldown_s"],
    )
    return router, names[0]


async def call(router, model, prompt, took):
    started = time.perf_counter()
    try:
        await router.aimage_generation(model=model, prompt=prompt)
    except Exception as error:  # Whatever it raises, the caller has no picture.
        return f"{type(error).__name__}: {error}"
    took.append((time.perf_counter() - started) * 1000)
    return None


def quantile(figures, share):
    return figures[min(len(figures) - 1, int(len(figures) * share))] if figures else 0.0


async def main():
    task = json.loads(sys.stdin.readline())
    litellm.suppress_debug_info = True
    router, model = build(task)
    # What it imports and connects to with its first call is not measured.
    for number in range(task["warm_up"]):
        await call(router, model, f"warm-up {number}", [])
    print("ready", flush=True)
    sys.stdin.readline()
    took, calls, started = [], [], time.perf_counter()
    for number in range(task["calls"]):
        wait = started + number / task["rate"] - time.perf_counter()
        await asyncio.sleep(max(wait, 0))
        calls.append(asyncio.create_task(call(router, model, f"{task['prefix']}{number}", took)))
    errors = [error for error in await asyncio.gather(*calls) if error]
    seconds = time.perf_counter() - started
    for error in errors[:3]:
        print(error, file=sys.stderr)
    took.sort()
    figures = {
        "completed": len(took),
        "lost": len(errors),
        "seconds": seconds,
        "p50_ms": quantile(took, 0.5),
        "p99_ms": quantile(took, 0.99),
    }
    print(json.dumps(figures), flush=True)


asyncio.run(main())
