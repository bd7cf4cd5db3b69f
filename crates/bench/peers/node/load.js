// The load: producers that each wait for their add, over many groups, with a bound on what is added and not yet done.
// The same as the load on Tidegate itself.

import { performance } from 'node:perf_hooks';

/** A stride that is prime to the number of groups visits all of them. */
const STRIDE = 7_919;

/** Adds jobs until the time is over and waits for the last one; gives what was done, and what each add took in ms. */
export async function produce(load, producer, worker) {
  const state = { added: 0, adds: [], start: performance.now() };
  const producers = Array.from({ length: load.producers }, (_, number) => one(load, producer, worker, state, number));
  // All of them end before anything is cleared away, also when one fails.
  const ends = await Promise.allSettled(producers);
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure) throw failure.reason;
  await worker.reached(state.added);
  await producer.settled?.(state.added);
  return { jobs: state.added, tookMs: performance.now() - state.start, adds: state.adds };
}

async function one(load, producer, worker, state, number) {
  const payload = 'x'.repeat(load.payload);
  let step = number;
  while (performance.now() - state.start < load.seconds * 1_000) {
    state.added += 1;
    const added = state.added;
    step += STRIDE;
    const started = performance.now();
    await producer.add(`group-${step % load.groups}`, payload);
    state.adds.push(performance.now() - started);
    await worker.reached(added - load.outstanding);
  }
}
