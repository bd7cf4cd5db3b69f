// Places orders with got: client.mjs URL COUNT WORKERS. Each order has a key, and is repeated with it until it is placed.
// Prints what came back, as JSON: the id of each order by its number, and how many answers were replays.
// The version of got is the newest that runs on the Node of Debian 12.

import { randomUUID } from "node:crypto";
import { Agent } from "node:http";
import got from "got";

const [url, count, workers] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

const client = got.extend({
  // Each try has a connection of its own.
  agent: { http: new Agent({ keepAlive: false }) },
  retry: {
    limit: 20,
    methods: ["POST"],
    statusCodes: [409, 502, 503],
    // As got would have it, but for the long pauses after a connection that broke.
    calculateDelay: ({ computedValue, retryAfter }) => (computedValue && !retryAfter ? 20 : computedValue),
  },
  timeout: { request: 60_000 },
  responseType: "json",
});

const ids = {};
let replays = 0;

async function work(first) {
  for (let number = first; number < count; number += workers) {
    const headers = { "Idempotency-Key": randomUUID() };
    const answer = await client.post(url, { json: { number }, headers });
    if (answer.statusCode !== 201 || answer.body.number !== number) {
      throw new Error(`order ${number}: ${answer.statusCode} ${JSON.stringify(answer.body)}`);
    }
    ids[number] = answer.body.id;
    replays += "idempotent-replayed" in answer.headers;
  }
}

await Promise.all(Array.from({ length: workers }, (_, first) => work(first)));
console.log(JSON.stringify({ ids, replays }));
