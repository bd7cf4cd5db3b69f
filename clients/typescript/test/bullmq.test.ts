/** The helper for BullMQ, with BullMQ itself on a real Redis. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Queue, QueueEvents, Worker } from "bullmq";
import { Tidegate } from "tidegate";
import { consumeOrDelay, delayJob } from "tidegate/bullmq";

import { Server, Upstream } from "./support.js";

/** A Redis that is reached through its socket: it needs no port. */
async function startRedis(): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), "tidegate-redis-"));
  const socket = join(dir, "redis.sock");
  const options = ["--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "inherit"] });
  after(async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
    rmSync(dir, { recursive: true, force: true });
  });
  for await (const line of child.stdout) if (/ready to accept/i.test(String(line))) break;
  child.stdout.resume();
  return socket;
}

const upstream = await Upstream.start({ after });
const server = await Server.start({ after }, upstream);
const { limits } = new Tidegate({ server: server.url });
const socket = await startRedis();
const connection = { path: socket };

test("throttled jobs are delayed, run within the limit and spend no attempt", async (t) => {
  const queue = new Queue("orders", { connection });
  const events = new QueueEvents("orders", { connection });
  const runs: number[] = [];
  const troubles: unknown[] = [];
  let delays = 0;
  const worker = new Worker(
    "orders",
    async (job, token) => {
      await consumeOrDelay(limits, job, token, "shop-7/requests", 1, { capacity: 2, refillPerS: 10 }).catch(
        (error: unknown) => {
          delays += 1;
          throw error;
        },
      );
      runs.push(performance.now());
      return job.attemptsMade;
    },
    { connection, concurrency: 4 },
  );
  worker.on("error", (error) => troubles.push(error));
  worker.on("failed", (_, error) => troubles.push(error));
  t.after(async () => {
    await worker.close();
    await events.close();
    await queue.close();
  });
  const start = performance.now();
  // One attempt: a job that spent it on waiting would fail.
  const jobs = await queue.addBulk(Array.from({ length: 6 }, () => ({ name: "order", data: {}, opts: { attempts: 1 } })));
  const made = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 20_000)));
  assert.ok(delays > 0, "a limit that was never short would prove nothing");
  assert.deepEqual(made, [0, 0, 0, 0, 0, 0]);
  assert.deepEqual(troubles, [], "to the worker a delay is no failure");
  // Two at once, then one each tenth of a second.
  const took = (runs.at(-1) ?? 0) - start;
  assert.ok(took >= 390, `${took} ms`);
});

test("a job that the API itself throttled waits as long as it was told", async (t) => {
  const queue = new Queue("told", { connection });
  const events = new QueueEvents("told", { connection });
  const starts: number[] = [];
  const worker = new Worker(
    "told",
    async (job, token) => {
      starts.push(performance.now());
      if (starts.length === 1) await delayJob(job, token, 300);
      return job.attemptsMade;
    },
    { connection },
  );
  t.after(async () => {
    await worker.close();
    await events.close();
    await queue.close();
  });
  const job = await queue.add("call", {}, { attempts: 1 });
  assert.equal(await job.waitUntilFinished(events, 20_000), 0);
  assert.ok((starts[1] ?? 0) - (starts[0] ?? 0) >= 299);
});
