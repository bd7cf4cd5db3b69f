// A worker process: handles jobs with a handler that does nothing, and reports to the first process
// how many are done, and at the end how long each waited, where that is known. Started by
// workers.js, never by hand.

import { readLoad } from './flags.js';
import { openPeer } from './peers.js';

const [space, ...rest] = process.argv.slice(2);
const { name, load } = readLoad(rest);

let done = 0;
let told = true;
const delays = [];

/** Counts finished jobs; one message for all that finish in one tick of the event loop. */
function finished(jobs) {
  done += jobs;
  if (!told) return;
  told = false;
  setImmediate(() => {
    told = true;
    if (process.connected) process.send({ done });
  });
}

/** Any failure ends the measurement. */
function failed(error) {
  console.error(`the worker of ${name}: ${error?.message || error}`);
  process.exit(1);
}

// The counting process is gone: there is no one left to work for.
process.on('disconnect', () => process.exit(1));
process.on('unhandledRejection', failed);

try {
  const peer = await openPeer(name, load, space);
  const worker = await peer.worker(finished, failed, (delay) => delays.push(delay));
  process.on('message', async () => {
    await worker.close();
    process.send({ delays }, () => process.exit(0));
  });
  process.send({ ready: true });
} catch (error) {
  failed(error);
}
