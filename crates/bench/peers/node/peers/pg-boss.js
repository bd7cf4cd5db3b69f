// pg-boss on PostgreSQL with the policy key_strict_fifo: jobs of a key in their order, one at a
// time. Workers are woken by a notification and fetch whole batches as long as these are full.
// Finished jobs stay, as it keeps them for days.

import { setTimeout as wait } from 'node:timers/promises';

import { PgBoss } from 'pg-boss';

import { POOL_MAX, bringToRest, dropSchema, withClient } from '../postgres.js';

const QUEUE = 'bench';
/** The shortest interval that it allows. */
const POLL_S = 0.5;
/** How long the last batch may take to be completed. */
const SETTLED_MS = 60_000;

export class Peer {
  constructor(url, load, space) {
    Object.assign(this, { url, load, space });
  }

  async prepare() {
    await bringToRest(this.url);
    const boss = await this.#start({ migrate: true });
    await boss.createQueue(QUEUE, { policy: 'key_strict_fifo', notify: true });
    await boss.stop();
  }

  async producer() {
    const boss = await this.#start({ migrate: false });
    return {
      add: (singletonKey, body) => boss.send(QUEUE, { body }, { singletonKey }),
      settled: (jobs) => this.#settled(jobs),
      close: () => boss.stop(),
    };
  }

  async worker(finished, failed) {
    const boss = await this.#start({ migrate: false, useListenNotify: true });
    boss.on('error', failed);
    const options = {
      batchSize: this.load.workers,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: POLL_S,
      notifyPollingIntervalSeconds: POLL_S,
    };
    await boss.work(QUEUE, options, async (jobs) => finished(jobs.length));
    return { close: () => boss.stop({ graceful: false }) };
  }

  clear() {
    return dropSchema(this.url, this.space);
  }

  async #start(options) {
    const pool = { connectionString: this.url, schema: this.space, max: POOL_MAX };
    const boss = new PgBoss({ ...pool, supervise: false, schedule: false, ...options });
    boss.on('error', (error) => console.error(`pg-boss: ${error.message}`));
    return boss.start();
  }

  /** A batch is counted when it is handled and completed a moment later, so the end is queried. */
  async #settled(jobs) {
    const count = `SELECT count(*)::int AS jobs FROM "${this.space}".job WHERE name = $1 AND state = 'completed'`;
    await withClient(this.url, async (client) => {
      for (const start = Date.now(); Date.now() - start < SETTLED_MS; await wait(1)) {
        if ((await client.query(count, [QUEUE])).rows[0].jobs >= jobs) return;
      }
      throw new Error(`not all of ${jobs} jobs were completed within ${SETTLED_MS / 1_000} s`);
    });
  }
}
