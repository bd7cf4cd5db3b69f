// A plain order service: POST /orders appends, GET /orders lists. It knows nothing of keys and repeats.

import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

const MOMENT = 5; // what an order takes, in milliseconds

const orders = [];

const server = createServer(async (request, response) => {
  let value = orders;
  if (request.method === "POST") {
    let text = "";
    for await (const piece of request) text += piece;
    await pause(MOMENT);
    value = { ...JSON.parse(text), id: `order-${orders.length}` };
    orders.push(value);
  }
  response.writeHead(request.method === "POST" ? 201 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
