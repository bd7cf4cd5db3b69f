// The load of `bench shopify` through shopify-api-node, one of several independent processes. The
// first line on stdin is its task. It makes one call to each shop, then prints `ready`; with the
// next line the load begins, and it ends when stdin does. The simulator does the counting.

import { createInterface } from 'node:readline';

import { Client } from './client.js';
import { keepUp } from './load.js';

async function main() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const told = JSON.parse((await lines.next()).value);
  const clients = told.shops.map((shop) => new Client(shop, told));
  await Promise.all(clients.map((client) => client.call('{ shop { name } }')));
  process.stdout.write('ready\n');
  if ((await lines.next()).done) return;
  const load = Promise.all(clients.map((client) => keepUp(client, told)));
  // Any failure ends the measurement; a load has no other end.
  await Promise.race([load, lines.next()]);
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(`shopify-api-node: ${error.message || error}`);
    process.exit(1);
  },
);
