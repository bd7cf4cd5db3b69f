/** Operations against a real server. */

import assert from "node:assert/strict";
import { after, test } from "node:test";

import {
  ApiError,
  OperationFailedError,
  OutcomeUnknownError,
  type Submission,
  Tidegate,
  WaitTimeoutError,
} from "tidegate";

import { Cutter, Server, Upstream } from "./support.js";

const upstream = await Upstream.start({ after });
const server = await Server.start({ after }, upstream);
const tidegate = new Tidegate({ server: server.url });

function put(path: string, more: Partial<Submission> = {}): Submission {
  return { upstream: "echo", group: path, request: { method: "PUT", path, body: { sku: "a_1" } }, ...more };
}

test("a call returns the operation with its result", async () => {
  const operation = await tidegate.call<{ got: { sku: string } }>(put("/orders"));
  assert.equal(operation.state, "succeeded");
  assert.equal(operation.result?.status, 200);
  // The names inside a body are left alone.
  assert.deepEqual(operation.result.body.got, { sku: "a_1" });
  assert.ok(operation.createdAt instanceof Date && operation.finishedAt instanceof Date);
  assert.match(operation.dedupeKey ?? "", /^call-/);
});

test("a call that the upstream refuses says why", async () => {
  const failed = await tidegate.call(put("/refuse")).catch((error: unknown) => error);
  assert.ok(failed instanceof OperationFailedError);
  assert.equal(failed.operation.fault?.class, "validation");
  assert.equal(failed.operation.result?.status ?? 422, 422);
  assert.equal((await tidegate.rerun(failed.operation.id, { reason: "fixed" })).id, failed.operation.id);
});

test("an outcome that is unknown is told apart, and resolved", async () => {
  const hang: Submission = { upstream: "echo", group: "hang", request: { method: "POST", path: "/hang" } };
  const unknown = await tidegate.call(hang).catch((error: unknown) => error);
  assert.ok(unknown instanceof OutcomeUnknownError);
  await tidegate.resolve(unknown.operation.id, "succeeded");
  const resolved = await tidegate.wait(unknown.operation.id);
  assert.deepEqual([resolved.state, resolved.result], ["succeeded", null]);
  const again = await tidegate.call(hang).catch((error: unknown) => error);
  assert.ok(again instanceof OutcomeUnknownError);
  await tidegate.resolve(again.operation.id, "succeeded", { result: { order_id: 7 }, reason: "seen" });
  assert.deepEqual((await tidegate.get(again.operation.id)).result?.body, { order_id: 7 });
});

test("a group is paused and resumed", async () => {
  const paused = await tidegate.pause("acme/7", { by: "anna", reason: "price fix", create: true });
  assert.deepEqual(paused, { name: "acme/7", state: "paused", depth: 0 });
  assert.equal((await tidegate.resume("acme/7", { reason: "fixed" })).state, "idle");
  await assert.rejects(tidegate.pause("misspelled"), { code: "TG0011", message: /^TG0011: / });
});

test("a job that ends elsewhere is completed", async () => {
  const poll = { path: "/jobs/{/got/sku}", every_s: 30, done: { "/state": ["done"] } };
  const { id } = await tidegate.submit(put("/job", { completion: { timeout_s: 60, poll } }));
  while ((await tidegate.why(id)).waitingFor !== "completion") await new Promise((later) => setTimeout(later, 20));
  const done = await tidegate.complete(id, "succeeded", { result: { file: "a.png" } });
  assert.deepEqual([done.applied, done.operation.state], [true, "succeeded"]);
  assert.deepEqual((await tidegate.get(id)).result?.body, { file: "a.png" });
  const fault = { message: "too late" };
  await assert.rejects(tidegate.complete(id, "failed", { fault, token: "forged" }), { code: "TG0015" });
});

test("a call that takes too long goes on, and is found again", async () => {
  const slow = put("/slow?ms=1500");
  const late = await tidegate.call(slow, { timeoutMs: 500 }).catch((error: unknown) => error);
  assert.ok(late instanceof WaitTimeoutError && late.id !== null, String(late));
  const ended = await tidegate.wait(late.id, { timeoutMs: 30_000 });
  assert.equal(ended.state, "succeeded");
  assert.equal(upstream.calls.get("/slow"), 1);
});

test("the caller's signal stops the wait with its own reason", async () => {
  const stop = new AbortController();
  const waiting = tidegate.call(put("/stopped", { delayMs: 60_000 }), { signal: stop.signal });
  setTimeout(() => stop.abort(new Error("enough")), 50);
  await assert.rejects(waiting, /enough/);
});

test("a lost response to a submission is asked for again, and nothing is sent twice", async (t) => {
  const cutter = await Cutter.start(t, server.url);
  const cut = new Tidegate({ server: cutter.url });
  cutter.drop = 2;
  const accepted = await cut.submit(put("/lost-submit"));
  assert.equal(accepted.deduplicated, false, "the client's own retry is no duplicate");
  cutter.drop = 2;
  const called = await cut.call(put("/lost-call"));
  assert.equal(called.state, "succeeded");
  cutter.drop = 1;
  const batch = await cut.batch([put("/lost-batch"), put("/lost-batch")]);
  assert.equal(new Set(batch.map((member) => ("id" in member ? member.id : member.code))).size, 2);
  assert.equal(cutter.dropped, 5);
  for (const member of [accepted, ...batch]) await tidegate.wait("id" in member ? member.id : "");
  assert.deepEqual(
    ["/lost-submit", "/lost-call", "/lost-batch"].map((path) => upstream.calls.get(path)),
    [1, 1, 2],
  );
});

test("your own key finds the first operation", async () => {
  const first = await tidegate.submit(put("/keyed", { dedupeKey: "order-1001" }));
  const second = await tidegate.submit(put("/keyed", { dedupeKey: "order-1001" }));
  assert.deepEqual([first.deduplicated, second.deduplicated, second.id], [false, true, first.id]);
  await assert.rejects(tidegate.submit(put("/other", { dedupeKey: "order-1001" })), { code: "TG0009", status: 409 });
});

test("a batch says of each member what became of it", async () => {
  const [good, bad] = await tidegate.batch([put("/b"), { ...put("/b"), upstream: "nowhere" }]);
  assert.ok(good && "id" in good && !(good instanceof ApiError));
  assert.ok(bad instanceof ApiError);
  assert.deepEqual([bad.code, bad.field], ["TG0003", "upstream"]);
});

test("an error has its code, title, field, detail and every problem", async () => {
  const wrong = await tidegate.submit(put("/x", { maxAttempts: 0, delayMs: -1 })).catch((error: unknown) => error);
  assert.ok(wrong instanceof ApiError);
  assert.deepEqual([wrong.status, wrong.code, wrong.field], [400, "TG0002", "max_attempts"]);
  assert.deepEqual(wrong.detail, { field: "max_attempts" });
  assert.ok(wrong.title.length > 0 && wrong.message.includes("max_attempts"));
  assert.deepEqual(wrong.problems.map((problem) => problem.field), ["max_attempts", "delay_ms"]);
  assert.equal(wrong.link, "/docs/errors/TG0002");
  await assert.rejects(tidegate.get("op_nothing"), { code: "TG0010", status: 404 });
});

test("a waiting operation says why, is listed and is canceled", async () => {
  const later = Array.from({ length: 205 }, () => put("/later", { delayMs: 60_000 }));
  const accepted = await tidegate.batch(later);
  const [first] = accepted;
  assert.ok(first && "id" in first);
  const why = await tidegate.why(first.id);
  assert.deepEqual([why.waitingFor, why.until instanceof Date], ["time", true]);
  const listed = new Set<string>();
  for await (const operation of tidegate.list({ group: "/later", state: ["waiting", "queued"] })) {
    listed.add(operation.id);
    assert.deepEqual(operation.request, { method: "PUT", path: "/later" });
  }
  assert.equal(listed.size, 205, "every page is read");
  const { request } = await tidegate.get(first.id);
  assert.deepEqual([request?.body, request?.bodyBytes], [{ sku: "a_1" }, 13]);
  assert.equal((await tidegate.cancel(first.id, { reason: "wrong price" })).state, "canceled");
});

test("a call survives a server that is killed and comes back", async (t) => {
  const mortal = await Server.start(t, upstream);
  const client = new Tidegate({ server: mortal.url, retries: 30 });
  const calling = client.call(put("/mortal?ms=150"));
  while (!upstream.calls.has("/mortal")) await new Promise((done) => setTimeout(done, 5));
  await mortal.killAndRestart(upstream);
  assert.equal((await calling).state, "succeeded");
});

test("a token is sent, and its absence refused", async (t) => {
  const token = `[[token]]\nname = "t"\nvalue_env = "CLIENT_TOKEN"\nscopes = ["read", "write"]`;
  const guarded = await Server.start(t, upstream, token, { CLIENT_TOKEN: "a-token-of-the-test" });
  const client = new Tidegate({ server: guarded.url, token: "a-token-of-the-test" });
  assert.equal((await client.call(put("/guarded"))).state, "succeeded");
  const stranger = new Tidegate({ server: guarded.url, token: "another-token" });
  await assert.rejects(stranger.submit(put("/guarded")), { code: "TG0015", status: 401 });
  const { id } = await client.submit(put("/guarded", { delayMs: 60_000 }));
  await assert.rejects(client.cancel(id), { code: "TG0016", status: 403 });
});
