// The load: producers that each wait for their add, over many groups, with a bound on the jobs that
// are added but not done. The same as the load on Tidegate itself.

import { performance } from 'node:perf_hooks';

/** A stride that is coprime with the number of groups visits all of them. */
const STRIDE = 7_919;

/** Adds jobs until the time is over, waits for the last one; returns jobs and latencies in ms. */
export async function produce(load, producer, worker) {
  const before = await warmUp(load, producer, worker);
  const state = { added: before, adds: [], start: performance.now() };
  await all(load, (number) => one(load, producer, worker, state, number));
  await worker.reached(state.added);
  await producer.settled?.(state.added);
  return { jobs: state.added - before, tookMs: performance.now() - state.start, adds: state.adds };
}

/** Runs one uncounted job per producer, so that no connection is opened during the measurement. */
async function warmUp(load, producer, worker) {
  await all(load, (number) => producer.add(`group-${number % load.groups}`, 'x'.repeat(load.payload)));
  await worker.reached(load.producers);
  return load.producers;
}

/** Runs all producers to their ends, even when one fails: only then may anything be removed. */
async function all(load, run) {
  const ends = await Promise.allSettled(Array.from({ length: load.producers }, async (_, number) => run(number)));
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure) throw failure.reason;
}

async function one(load, producer, worker, state, number) {
  const payload = 'x'.repeat(load.payload);
  let step = number;
  while (performance.now() - state.start < load.seconds * 1_000) {
    state.added += load.batch;
    const added = state.added;
    const groups = Array.from({ length: load.batch }, () => `group-${(step += STRIDE) % load.groups}`);
    const started = performance.now();
    await (load.batch === 1 ? producer.add(groups[0], payload) : producer.addAll(groups, payload));
    state.adds.push(performance.now() - started);
    await worker.reached(added - load.outstanding);
  }
}
