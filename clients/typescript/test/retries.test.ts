/** When a request is sent again, by a fetch of the test's own. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { ApiError, NoResponseError, Tidegate, TidegateError } from "tidegate";

const submission = { upstream: "echo", group: "g", request: { method: "PUT" as const, path: "/" } };
const accepted = { id: "op_1", state: "queued", group: "g", deduplicated: true };

/** A fetch that gives these responses in turn, and remembers what was sent. */
function scripted(...script: (() => Response)[]) {
  const sent: { key: string; at: number }[] = [];
  const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
    const { dedupe_key: key } = JSON.parse(String(init?.body)) as { dedupe_key: string };
    sent.push({ key, at: performance.now() });
    const next = script[sent.length - 1] ?? script.at(-1);
    return (next as () => Response)();
  };
  return { sent, fetch: fetch as typeof globalThis.fetch };
}

const busy = (after: string) => () => Response.json({ error: {} }, { status: 503, headers: { "retry-after": after } });

test("Retry-After is waited out, and every try has the same key", async () => {
  const { sent, fetch } = scripted(busy("0.3"), busy("0.3"), () => Response.json(accepted));
  await new Tidegate({ fetch }).submit(submission);
  const [first, second, third] = sent;
  assert.ok(first && second && third && sent.length === 3);
  assert.ok(second.at - first.at >= 299 && third.at - second.at >= 299, "not before the server said");
  assert.equal(new Set(sent.map(({ key }) => key)).size, 1);
});

test("two calls never share a key", async () => {
  const { sent, fetch } = scripted(() => Response.json(accepted));
  const client = new Tidegate({ fetch });
  await client.submit(submission);
  await client.submit(submission);
  assert.notEqual(sent[0]?.key, sent[1]?.key);
});

test("a key has one name or the other, and null is none", async () => {
  const { sent, fetch } = scripted(() => Response.json(accepted));
  const client = new Tidegate({ fetch });
  // As programs have them that are not type-checked.
  const wired = { ...submission, dedupe_key: "order-7" };
  assert.equal((await client.submit(wired)).deduplicated, true);
  await client.submit({ ...submission, dedupeKey: null as unknown as string });
  assert.equal(sent[0]?.key, "order-7");
  assert.match(sent[1]?.key ?? "", /^call-/);
});

test("what cannot be sent is the caller's error, and a token is not shown", async () => {
  const { sent, fetch } = scripted(() => Response.json(accepted));
  const request = { method: "POST" as const, path: "/", body: { n: 1n } };
  const huge = { ...submission, request } as unknown as typeof submission;
  await assert.rejects(new Tidegate({ fetch }).submit(huge), TypeError);
  assert.equal(sent.length, 0);
  await new Tidegate({ fetch, token: "tg_secret\n" }).submit(submission);
  const isSilent = (error: unknown) => error instanceof TidegateError && !error.message.includes("secret");
  assert.throws(() => new Tidegate({ token: "tg_secret\nx" }), isSilent);
});

test("tries are bounded, and what cannot succeed is not tried again", async () => {
  const broken = scripted(() => {
    throw new TypeError("fetch failed");
  });
  await assert.rejects(new Tidegate({ fetch: broken.fetch, retries: 2 }).submit(submission), NoResponseError);
  assert.equal(broken.sent.length, 3);
  const refused = scripted(() => Response.json({ error: { code: "TG0001" } }, { status: 400 }));
  await assert.rejects(new Tidegate({ fetch: refused.fetch }).submit(submission), { code: "TG0001" });
  assert.equal(refused.sent.length, 1);
});

test("a key that is still in progress is waited for", async () => {
  const body = { detail: "…", error_code: "IDEMPOTENCY_KEY_PROCESSING", idempotency_key: "k" };
  const { sent, fetch } = scripted(() => Response.json(body, { status: 409 }), () => Response.json(accepted));
  await new Tidegate({ fetch }).submit(submission);
  assert.equal(sent.length, 2);
});

test("a response that never comes ends with its timeout", async () => {
  const silent = ((_: unknown, init?: RequestInit) =>
    new Promise((_resolve, reject) => {
      init?.signal?.addEventListener("abort", () => reject(init.signal?.reason as Error));
    })) as typeof globalThis.fetch;
  const client = new Tidegate({ fetch: silent, timeoutMs: 30, retries: 0 });
  // AbortSignal.timeout does not keep a process alive.
  const awake = setInterval(() => undefined, 10);
  await assert.rejects(client.submit(submission), /not in time/).finally(() => clearInterval(awake));
});

test("an address without a server is refused at once", () => {
  for (const server of ["127.0.0.1:7400", "localhost:7400", "ftp://a", "http://", "tidegate"]) {
    assert.throws(() => new Tidegate({ server }), /is not a valid server address/, server);
  }
});

const answering = (response: () => Response) =>
  new Tidegate({ fetch: (async () => response()) as typeof globalThis.fetch });

test("a response of another server is named as such", async () => {
  const page = () => new Response("<p>Welcome</p>", { headers: { "content-type": "text/html" } });
  const moved = () => new Response(null, { status: 301, headers: { location: "http://elsewhere" } });
  const missing = () => Response.json({ error: "not found" }, { status: 404 });
  for (const response of [page, moved, missing]) {
    const isNamed = (error: unknown) => error instanceof ApiError && /not as Tidegate does/.test(error.message);
    await assert.rejects(answering(response).get("op_1"), isNamed);
  }
  for (const body of [{}, [], { id: 7 }, null]) {
    const isNamed = (error: unknown) => error instanceof TidegateError && /not one of Tidegate's/.test(error.message);
    await assert.rejects(answering(() => Response.json(body)).get("op_1"), isNamed);
  }
});

test("no name leaves its place in the path", async () => {
  const client = answering(() => Response.json({ operations: [], next_cursor: null }));
  for (const name of [".", ".."]) {
    const calls = [
      () => client.get(name),
      () => client.cancel(name),
      () => client.resume(name),
      () => client.entities.get(name, "operations"),
      () => client.entities.forget("customer", name),
      () => client.entities.unregister(name),
      () => client.limits.checkAndConsume(name),
      () => client.leases.acquire(name),
    ];
    for (const call of calls) await assert.rejects(call, /cannot be a name/, String(call));
  }
});

test("a result of more than one call is the body", async () => {
  const generation = { results: [{ url: "/a.png" }] };
  const data = JSON.stringify({ id: "op_1", state: "succeeded", result: generation });
  const client = answering(() => new Response(`event: operation\nid: 7\ndata: ${data}\n\n`));
  for await (const event of client.events({ results: true })) {
    assert.ok(event.type === "operation");
    assert.deepEqual(event.result, { status: null, headers: {}, body: generation });
    break;
  }
});
