/** Entities against a real server, with an owner in this process. */

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { Tidegate } from "tidegate";

import { Cutter, Server, Upstream } from "./support.js";

const upstream = await Upstream.start({ after });
const source = `[[source]]\nentity_type = "page"\nupstream = "echo"\npath = "/pages/{id}"\n`;
const server = await Server.start({ after }, upstream, source);
const tidegate = new Tidegate({ server: server.url });

/** Owns customers: c-7 is there, no other is. */
let questions = 0;
const owner = http.createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += String(part);
  questions += 1;
  const { correlation_id, payload } = JSON.parse(body) as {
    correlation_id: string;
    payload: { entity_type: string; entity_id: string };
  };
  const known = payload.entity_id === "c-7";
  const { entity_type, entity_id } = payload;
  const about = { entity_type, entity_id, source_module: "customers" };
  const answer = known
    ? { event: "entity/updated", payload: { ...about, data: { firstName: "Ada", city: "London" }, version: 3 } }
    : { event: "entity/not-found", payload: { ...about, reason: "deleted_or_never_existed" } };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ ...answer, correlation_id }));
});
owner.listen(0, "127.0.0.1");
await once(owner, "listening");
after(() => {
  owner.closeAllConnections();
  owner.close();
});
const url = `http://127.0.0.1:${(owner.address() as AddressInfo).port}/hydrate`;

test("HYD-13: an owner is registered, asked once, and its answers are kept", async () => {
  const absent = await tidegate.entities.get("customer", "c-7");
  assert.deepEqual([absent.state, absent.reason], ["unavailable", "source-absent"]);
  assert.equal((await tidegate.entities.register("customer", url)).url, url);
  const wait = { waitMs: 10_000 };
  const all = await Promise.all(Array.from({ length: 20 }, () => tidegate.entities.get("customer", "c-7", wait)));
  for (const found of all) {
    assert.deepEqual([found.state, found.version, found.stale], ["found", 3, false]);
    assert.deepEqual(found.data, { firstName: "Ada", city: "London" });
    assert.ok(found.asOf instanceof Date);
  }
  assert.equal(questions, 1);
  const part = await tidegate.entities.get<{ city: string }>("customer", "c-7", { fields: ["city"] });
  assert.deepEqual(part.data, { city: "London" });
  for (let time = 0; time < 2; time++) {
    const missing = await tidegate.entities.get("customer", "a/b?c", wait);
    assert.deepEqual([missing.state, missing.reason], ["not-found", "deleted_or_never_existed"]);
  }
  assert.equal(questions, 2, "not found is remembered");
});

test("HYD-13: events are published, also after a lost response, and a copy is forgotten", async (t) => {
  const cutter = await Cutter.start(t, server.url);
  const cut = new Tidegate({ server: cutter.url });
  cutter.drop = 1;
  const about = { entityType: "customer", entityId: "c-9", sourceModule: "customers", version: 1 };
  assert.equal(await cut.entities.publishUpdated({ ...about, data: { firstName: "Eve" } }), true);
  let found = await tidegate.entities.get("customer", "c-9", { maxAgeMs: 60_000 });
  while (found.state !== "found") found = await tidegate.entities.get("customer", "c-9");
  assert.deepEqual(found.data, { firstName: "Eve" });
  assert.equal(await tidegate.entities.forget("customer", "c-9"), true);
  assert.equal(await tidegate.entities.forget("customer", "c-9"), false);
  const published = { ...about, version: 2, reason: "deleted_or_never_existed" } as const;
  assert.equal(await tidegate.entities.publishNotFound(published), true);
});

test("HYD-14: an upstream answers by configuration, and stays", async () => {
  const page = await tidegate.entities.get<{ path: string }>("page", "7", { waitMs: 10_000 });
  assert.deepEqual([page.state, page.data?.path, page.sourceModule], ["found", "/pages/7", "echo"]);
  const sources = await tidegate.entities.sources();
  assert.deepEqual(sources.map((source) => source.upstream ?? source.url), [url, "echo"]);
  await assert.rejects(tidegate.entities.unregister("page"), { code: "TG0002", field: "type" });
  assert.equal(await tidegate.entities.unregister("customer"), true);
});
