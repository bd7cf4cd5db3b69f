// Shared by the peers on Redis: a connection, an idle server before, nothing left behind.

import { setTimeout as wait } from 'node:timers/promises';

import { Redis } from 'ioredis';

/** How long a server may take to become idle. */
const REST_MS = 120_000;

/** Opens a connection that fails instead of retrying forever. */
export function connect(url, options = {}) {
  const redis = new Redis(url, { maxRetriesPerRequest: 3, ...options });
  // Pending calls get the error; without this listener the process would exit at the first one.
  redis.on('error', () => {});
  return redis;
}

/** Rewrites the server's log now, so that this does not happen during the measurement. */
export async function bringToRest(url) {
  const redis = connect(url);
  try {
    await redis.bgrewriteaof().catch((error) => console.error(`the log is not rewritten first: ${error.message}`));
    for (const start = Date.now(); Date.now() - start < REST_MS; await wait(50)) {
      const info = await redis.info('persistence');
      if (!/(aof_rewrite|rdb_bgsave)_(in_progress|scheduled):1/.test(info)) return;
    }
    throw new Error(`the server was still writing its files after ${REST_MS / 1_000} s`);
  } finally {
    redis.disconnect();
  }
}

/** Removes every key that begins with `prefix`. */
export async function removeKeys(url, prefix) {
  const redis = connect(url);
  try {
    for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
      const [next, keys] = await redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 1_000);
      if (keys.length > 0) await redis.unlink(...keys);
      cursor = next;
    }
  } finally {
    redis.disconnect();
  }
}
