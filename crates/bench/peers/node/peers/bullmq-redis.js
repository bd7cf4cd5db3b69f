// BullMQ on Redis.

import { connect, bringToRest, removeKeys } from '../redis.js';
import * as bullmq from './bullmq.js';

export class Peer {
  constructor(url, load, space) {
    Object.assign(this, { url, load, space });
  }

  prepare() {
    return bringToRest(this.url);
  }

  async producer() {
    const connection = connect(this.url);
    const producer = await bullmq.producer({ connection, prefix: this.space });
    return {
      ...producer,
      close: async () => {
        await producer.close();
        connection.disconnect();
      },
    };
  }

  worker(finished, failed, started) {
    // A worker waits for jobs as long as it takes, so the library needs a connection that does too.
    const connection = connect(this.url, { maxRetriesPerRequest: null });
    return bullmq.worker({ connection, prefix: this.space }, this.load.workers, undefined, finished, failed, started);
  }

  clear() {
    return removeKeys(this.url, `${this.space}:`);
  }
}
