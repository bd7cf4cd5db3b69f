// The load of `bench operations` on one queue: `node main.js PEER --seconds 10 …`, with the store's
// URL in TIDEGATE_PEER_STORE, because everyone can see the arguments of a process. This process
// produces, one or more others work. It prints one JSON object on stdout and leaves nothing on the
// server.

import { figures } from './figures.js';
import { readLoad } from './flags.js';
import { produce } from './load.js';
import { openPeer } from './peers.js';
import { startWorkers } from './workers.js';

async function measure(peer, load, stop) {
  await peer.prepare();
  const producer = await peer.producer();
  const workers = await startWorkers(process.argv.slice(2), load.processes, peer.space, stop);
  try {
    const run = await produce(load, producer, workers);
    return figures(run, await workers.stop());
  } finally {
    await workers.stop();
    await producer.close();
  }
}

async function main() {
  const { name, load } = readLoad(process.argv.slice(2));
  // Names of its own, so that it conflicts neither with ours nor with leftovers of another run.
  const peer = await openPeer(name, load, `tidegate_peer_${process.pid}`);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => stop.abort(new Error(`${name} was stopped by ${signal}`)));
  }
  try {
    const measured = await measure(peer, load, stop.signal);
    process.stdout.write(`${JSON.stringify(measured)}\n`);
  } finally {
    await peer.clear();
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error.message || String(error));
    process.exit(1);
  },
);
