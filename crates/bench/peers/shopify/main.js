// The load of `bench shopify` through shopify-api-node, one of several processes that know nothing of each other. The first
// line on stdin says what to do. One call is made to each shop, then `ready` is printed; with the next line the load begins,
// and it ends when stdin does. What is counted is counted by the simulator.

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
  // Nothing is measured once something went wrong; a load has no other end.
  await Promise.race([load, lines.next()]);
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(`shopify-api-node: ${error.message || error}`);
    process.exit(1);
  },
);
