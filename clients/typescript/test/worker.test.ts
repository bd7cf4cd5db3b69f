/** Workers: jobs in order, retries, cancels, and servers that are killed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { ApiError, awaiting, type Job, JobError, OperationFailedError, Tidegate } from "tidegate";

import { Server, Upstream } from "./support.js";

const KINDS = '[[kind]]\nname = "resize"\nworker = "remote"\n[[kind]]\nname = "scan"\nworker = "remote"\n';

test("jobs run in order, again when they may, and fail when that is pointless", async (t) => {
  const server = await Server.start(t, await Upstream.start(t), KINDS);
  const tidegate = new Tidegate({ server: server.url });
  const seen: [number, number][] = [];
  const resize = async (job: Job): Promise<unknown> => {
    const { n } = job.payload as { n: number };
    seen.push([n, job.attempt]);
    assert.equal(job.alternative, null);
    if (n === 3) throw new JobError("failed", "no such image", { class: "not_found", blame: [], cost: 3 });
    if (n === 4) return 4n;
    if (n === 1 && job.attempt === 1) throw new Error("not yet");
    return { width: n };
  };
  const worker = tidegate.worker({ kinds: { resize }, concurrency: 4 });
  const running = worker.run();
  const accepted = await Promise.all(
    [0, 1, 2].map((n) => tidegate.submit({ kind: "resize", group: `g`, payload: { n } })),
  );
  for (const { id } of accepted) assert.equal((await tidegate.wait(id)).state, "succeeded");
  assert.equal(seen.length, 4);
  await assert.rejects(
    tidegate.call({ kind: "resize", group: "g", payload: { n: 3 } }, { timeoutMs: 20_000 }),
    (error: unknown) => error instanceof OperationFailedError && error.operation.fault?.class === "not_found",
  );
  await assert.rejects(
    tidegate.call({ kind: "resize", group: "g", payload: { n: 4 } }, { timeoutMs: 20_000 }),
    (error: unknown) => {
      const fault = error instanceof OperationFailedError ? error.operation.fault : undefined;
      return /not JSON/.test(fault?.message ?? "") && fault?.mayHaveHappened === true;
    },
  );
  const next = await tidegate.call({ kind: "resize", group: "g", payload: { n: 5 } }, { timeoutMs: 20_000 });
  assert.deepEqual(next.result?.body, { width: 5 });
  await worker.stop();
  await running;
});

test("a job that comes after the stop is given back, and an idle worker stops at once", async (t) => {
  const settled: unknown[] = [];
  const fetch = (async (url: string, init: RequestInit) => {
    if (url.endsWith("/settle")) {
      settled.push(...(JSON.parse(String(init.body)) as { settlements: unknown[] }).settlements);
      return Response.json({ settlements: [{ applied: true }] });
    }
    // It was stopped while the response was on the way.
    void late.stop();
    return Response.json({ claims: [{ id: "op_1", fence: 7, kind: "resize", group: "g", attempt: 1, payload: 1 }] });
  }) as typeof globalThis.fetch;
  const resize = async (): Promise<unknown> => assert.fail("it was started");
  const late = new Tidegate({ fetch }).worker({ kinds: { resize } });
  await late.run();
  assert.deepEqual(settled, [{ id: "op_1", fence: 7, outcome: "returned" }]);

  const server = await Server.start(t, await Upstream.start(t), KINDS);
  const idle = new Tidegate({ server: server.url }).worker({ kinds: { resize } });
  const running = idle.run();
  await sleep(200);
  const asked = performance.now();
  await idle.stop();
  await running;
  assert.ok(performance.now() - asked < 5_000);
});

test("a report that the server refuses is replaced, and its job does not run again", async (t) => {
  const server = await Server.start(t, await Upstream.start(t), KINDS);
  const tidegate = new Tidegate({ server: server.url });
  const [runs, codes] = [[] as string[], [] as string[]];
  const resize = async ({ id }: Job): Promise<unknown> => {
    runs.push(id);
    return awaiting({ externalId: "j-1", memo: "x".repeat(20_000) });
  };
  const scan = async ({ id }: Job): Promise<unknown> => {
    runs.push(id);
    throw new JobError("throttled", "full", { limit: "nope" });
  };
  const onError = (error: unknown): void => void codes.push(error instanceof ApiError ? error.code : String(error));
  const worker = tidegate.worker({ kinds: { resize, scan }, leaseMs: 1_000, onError });
  const running = worker.run();
  const started = await tidegate.submit({ kind: "resize", group: "refused", payload: 1 });
  const full = await tidegate.submit({ kind: "scan", group: "full", payload: 1, maxAttempts: 1 });
  for (const { id } of [started, full]) {
    const ended = await tidegate.wait(id, { timeoutMs: 20_000 });
    assert.equal(ended.state, "failed");
    assert.match(ended.fault?.message ?? "", /refused/);
    assert.equal(ended.fault?.mayHaveHappened, id === started.id);
  }
  await worker.stop();
  await running;
  assert.deepEqual(runs.sort(), [started.id, full.id].sort());
  assert.deepEqual(codes.sort(), ["TG0005", "TG0007"]);
});

test("a job is stopped at the end of its lease while an extension hangs", async () => {
  const job = { id: "op_1", fence: 7, kind: "resize", group: "g", attempt: 1, payload: 1 };
  const claims = [job];
  const fetch = (async (url: string, init: RequestInit) => {
    if (url.endsWith("/settle")) return Response.json({ settlements: [{ applied: false }] });
    if (url.endsWith("/take") && claims.length > 0) return Response.json({ claims: claims.splice(0) });
    return new Promise((_, reject) => init.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
  }) as typeof globalThis.fetch;
  // As an open connection would.
  const alive = setInterval(() => undefined, 1_000);
  const since = performance.now();
  let stoppedAfter = Infinity;
  const resize = async ({ signal }: Job): Promise<unknown> => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    stoppedAfter = performance.now() - since;
    return void worker.stop();
  };
  const worker = new Tidegate({ fetch, timeoutMs: 3_000 }).worker({ kinds: { resize }, leaseMs: 900 });
  await worker.run();
  clearInterval(alive);
  assert.ok(stoppedAfter < 2_500, `${stoppedAfter} ms`);
});

test("a worker has room for a job", () => {
  assert.throws(() => new Tidegate({}).worker({ kinds: {}, concurrency: 0 }), /at least 1/);
});

test("a worker that the server refuses ends with the refusal", async (t) => {
  const server = await Server.start(t, await Upstream.start(t), KINDS);
  const worker = new Tidegate({ server: server.url }).worker({ kinds: { other: async () => 1 } });
  await assert.rejects(worker.run(), (error: unknown) => error instanceof ApiError && error.status === 422);
});

test("a job is awaited elsewhere, and another is canceled", async (t) => {
  const server = await Server.start(t, await Upstream.start(t), KINDS);
  const tidegate = new Tidegate({ server: server.url });
  let started = false;
  const scan = async (job: Job): Promise<unknown> => {
    if (job.payload === "slow") {
      started = true;
      await sleep(60_000, undefined, { signal: job.signal });
    }
    if (!job.job) return awaiting({ externalId: "j-1", memo: [1], afterMs: 50 });
    return [job.job.externalId, job.job.memo];
  };
  const worker = tidegate.worker({ kinds: { scan }, leaseMs: 1_000 });
  const running = worker.run();
  const done = await tidegate.call({ kind: "scan", group: "a", payload: 1 }, { timeoutMs: 20_000 });
  assert.deepEqual(done.result?.body, ["j-1", [1]]);
  const slow = await tidegate.submit({ kind: "scan", group: "b", payload: "slow" });
  while (!started) await sleep(10);
  await tidegate.cancel(slow.id);
  assert.equal((await tidegate.wait(slow.id, { timeoutMs: 20_000 })).state, "canceled");
  await worker.stop();
  await running;
});
