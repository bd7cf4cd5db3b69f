// BullMQ on PostgreSQL, in a schema of its own.

import { createPostgresBackend, runMigrations } from 'bullmq';

import { POOL_MAX, bringToRest, dropSchema, withClient } from '../postgres.js';
import * as bullmq from './bullmq.js';

export class Peer {
  constructor(url, load, space) {
    Object.assign(this, { url, load, space });
    this.options = { connection: { connectionString: url, schema: space, max: POOL_MAX } };
  }

  async prepare() {
    await bringToRest(this.url);
    await withClient(this.url, (client) => runMigrations(client, this.space));
  }

  producer() {
    return bullmq.producer(this.options, createPostgresBackend);
  }

  worker(finished, failed) {
    return bullmq.worker(this.options, this.load.workers, createPostgresBackend, finished, failed);
  }

  clear() {
    return dropSchema(this.url, this.space);
  }
}
