// groupmq on Redis: jobs of a group in their order, one at a time. Finished jobs are removed at
// once, which is its default; adds are not batched, since a batched add is confirmed before Redis
// has it.

import { Queue, Worker } from 'groupmq';

import { bringToRest, connect, removeKeys } from '../redis.js';

export class Peer {
  constructor(url, load, space) {
    Object.assign(this, { url, load, space });
  }

  prepare() {
    return bringToRest(this.url);
  }

  producer() {
    const { redis, queue } = this.#open();
    return {
      add: (groupId, body) => queue.add({ groupId, data: { body } }),
      close: async () => {
        await queue.close();
        redis.disconnect();
      },
    };
  }

  worker(finished, failed) {
    const { queue } = this.#open();
    const worker = new Worker({ queue, concurrency: this.load.workers, handler: async () => {} });
    worker.on('completed', () => finished(1));
    worker.on('failed', (job) => failed(new Error(job.failedReason)));
    worker.on('error', failed);
    return { close: () => worker.close() };
  }

  clear() {
    return removeKeys(this.url, `groupmq:${this.space}`);
  }

  #open() {
    const redis = connect(this.url, { maxRetriesPerRequest: null });
    return { redis, queue: new Queue({ redis, namespace: this.space, jobTimeoutMs: 30_000 }) };
  }
}
