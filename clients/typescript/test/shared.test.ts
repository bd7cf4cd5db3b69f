/** Buckets, leases and events against a real server. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { type Event, LeaseLostError, Tidegate } from "tidegate";

import { Cutter, Server, Upstream } from "./support.js";

const upstream = await Upstream.start({ after });
const server = await Server.start({ after }, upstream);
const tidegate = new Tidegate({ server: server.url });
/** Nothing comes back while a test looks. */
const still = { capacity: 10, refillPerS: 0.001 };

test("tokens are taken, or it is said when they are there", async () => {
  const first = await tidegate.limits.checkAndConsume("mail/out", 7, { capacity: 10, refillPerS: 2 });
  assert.deepEqual([first.allowed, first.delayMs, first.tokensRemaining], [true, 0, 3]);
  const second = await tidegate.limits.checkAndConsume("mail/out", 7);
  assert.equal(second.allowed, false);
  assert.ok(second.delayMs > 0 && second.delayMs <= 2_000, String(second.delayMs));
  await assert.rejects(tidegate.limits.checkAndConsume("mail/out", 11), { code: "TG0006", status: 422 });
  await assert.rejects(tidegate.limits.checkAndConsume("new"), { code: "TG0012", status: 404 });
});

test("several buckets are taken together", async () => {
  const also = [{ name: "all", cost: 9, ...still }];
  const both = await tidegate.limits.checkAndConsume("one", 1, { ...still, also });
  assert.deepEqual([both.tokensRemaining, both.also], [9, [1]]);
  const none = await tidegate.limits.checkAndConsume("one", 1, { ...still, also });
  assert.deepEqual([none.allowed, Math.round(none.tokensRemaining)], [false, 9]);
});

test("a bucket is settled, and follows what the API reports", async () => {
  const initial = still;
  await tidegate.limits.checkAndConsume("learned", 5, { initial });
  const settled = await tidegate.limits.settle("learned", { reserved: 5, actual: 1, remaining: 4, capacity: 20 });
  assert.deepEqual([Math.round(settled.tokensRemaining), settled.capacity], [4, 20]);
  // What was learned stays: the first figures are for a bucket that does not exist.
  const next = await tidegate.limits.checkAndConsume("learned", 1, { initial });
  assert.deepEqual([next.allowed, Math.round(next.tokensRemaining)], [true, 3]);
  assert.equal((await tidegate.limits.settle("learned", { reserved: 0, actual: 0 })).capacity, 20);
});

test("a lost response takes no tokens twice", async (t) => {
  const cutter = await Cutter.start(t, server.url);
  const cut = new Tidegate({ server: cutter.url });
  cutter.drop = 2;
  const taken = await cut.limits.checkAndConsume("cut", 4, still);
  assert.deepEqual([taken.allowed, taken.tokensRemaining], [true, 6]);
  cutter.drop = 1;
  const settled = await cut.limits.settle("cut", { reserved: 4, actual: 2 });
  assert.deepEqual([Math.round(settled.tokensRemaining), cutter.dropped], [8, 3]);
});

test("a lease has one holder, outlives its time by renewal, and is given back", async () => {
  const lease = await tidegate.leases.acquire("bulk-lock:acme", { ttlMs: 1_500 });
  assert.ok(lease);
  await sleep(2_300);
  assert.equal(await tidegate.leases.acquire("bulk-lock:acme"), null, "it was renewed");
  assert.equal(lease.signal.aborted, false);
  const waiting = tidegate.leases.acquire("bulk-lock:acme", { ttlMs: 1_500, waitMs: 30_000 });
  await lease.release();
  const next = await waiting;
  assert.ok(next && next.fence > lease.fence);
  await next.release();
});

test("a lost response to acquire does not lock the caller out", async (t) => {
  const cutter = await Cutter.start(t, server.url);
  cutter.drop = 1;
  await using lease = await new Tidegate({ server: cutter.url }).leases.acquire("lost/lease");
  assert.ok(lease);
  assert.equal(cutter.dropped, 1);
});

test("work is told when its lease is lost", async () => {
  const lost = tidegate.leases.hold(
    "stolen",
    async (lease) => {
      // An operator releases it; its token is no secret.
      const path = `${server.url}/v1/leases/stolen/release`;
      await fetch(path, { method: "POST", body: JSON.stringify({ token: `lease_${lease.fence}` }) });
      await sleep(30_000, undefined, { signal: lease.signal });
    },
    { ttlMs: 1_500 },
  );
  await assert.rejects(lost, LeaseLostError);
  assert.equal(await tidegate.leases.hold("stolen", () => Promise.resolve(7)), 7);
});

test("a lease that cannot be renewed is lost before it expires", async (t) => {
  const mortal = await Server.start(t, upstream);
  const lease = await new Tidegate({ server: mortal.url }).leases.acquire("mortal", { ttlMs: 600 });
  const since = performance.now();
  await mortal.kill();
  // The timers of a lease do not keep a process alive.
  const awake = setInterval(() => undefined, 10);
  await new Promise((lost) => lease?.signal.addEventListener("abort", lost));
  clearInterval(awake);
  assert.ok(performance.now() - since <= 1_600, "it went on trying");
  assert.ok(lease?.signal.reason instanceof LeaseLostError);
});

test("events resume after a connection that broke before the first of them", async (t) => {
  const cutter = await Cutter.start(t, server.url);
  const cut = new Tidegate({ server: cutter.url });
  const group = "first-events";
  const reading = (async () => {
    const states: string[] = [];
    for await (const event of cut.events({ group })) {
      states.push(event.type === "operation" ? event.state : event.type);
      if (states.at(-1) === "succeeded") break;
    }
    return states;
  })();
  // What the stream opens with has arrived by then.
  await sleep(500);
  cutter.cutAll();
  await tidegate.call({ upstream: "echo", group, request: { method: "PUT", path: "/e", body: {} } });
  assert.deepEqual(await reading, ["queued", "running", "succeeded"]);
});

test("events resume after a broken connection, none lost and none twice", async (t) => {
  const cutter = await Cutter.start(t, server.url);
  const cut = new Tidegate({ server: cutter.url });
  const group = "events";
  const call = (body: number) =>
    tidegate.call({ upstream: "echo", group, request: { method: "PUT", path: "/e", body: { body } } });
  const seen: Event[] = [];
  const ended: unknown[] = [];
  const reading = (async () => {
    for await (const event of cut.events({ group, results: true })) {
      seen.push(event);
      if (event.type === "operation" && event.state === "succeeded") ended.push(event.result?.body);
      if (ended.length === 3) return;
    }
  })();
  // Only what happens from now on is sent, so the first call waits for the stream.
  while (seen.length === 0) await Promise.race([reading, call(0).then(() => sleep(20))]);
  ended.length = 0;
  await sleep(50);
  seen.length = 0;
  await call(1);
  cutter.cutAll();
  await call(2);
  await call(3);
  await reading;
  assert.deepEqual(ended, [1, 2, 3].map((body) => ({ path: "/e", got: { body } })));
  const ids = seen.map((event) => (event.type === "reset" ? "reset" : event.eventId));
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(!ids.includes("reset"));
});
