// BullMQ, on any server: one queue without groups, which only its paid version has. Finished jobs
// are removed at once.

import { Queue, Worker } from 'bullmq';

const QUEUE = 'bench';
const REMOVED = { removeOnComplete: true, removeOnFail: true };

/** Adds jobs. */
export async function producer(options, backend) {
  const queue = new Queue(QUEUE, { ...options, defaultJobOptions: REMOVED }, backend);
  queue.on('error', () => {});
  await queue.waitUntilReady();
  return {
    add: (_group, body) => queue.add('job', { body }),
    addAll: (groups, body) => queue.addBulk(groups.map(() => ({ name: 'job', data: { body } }))),
    close: () => queue.close(),
  };
}

/** Handles jobs. A job counts when its end is in the store. */
export async function worker(options, concurrency, backend, finished, failed, started = () => {}) {
  const handle = async (job) => started(Date.now() - job.timestamp);
  const one = new Worker(QUEUE, handle, { ...options, ...REMOVED, concurrency }, backend);
  one.on('completed', () => finished(1));
  one.on('failed', (_job, error) => failed(error));
  one.on('error', failed);
  await one.waitUntilReady();
  return { close: () => one.close() };
}
