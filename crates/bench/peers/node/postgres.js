// Shared by the peers on PostgreSQL: an idle server before, a schema that is dropped afterwards.

import pg from 'pg';

/** Connections per process, of two. */
export const POOL_MAX = 20;

/** Vacuums and writes a checkpoint now, so that this does not happen during the measurement. */
export async function bringToRest(connectionString) {
  await withClient(connectionString, async (client) => {
    for (const statement of ['VACUUM ANALYZE', 'CHECKPOINT']) {
      // Without the permission the measurement continues.
      await client.query(statement).catch((error) => console.error(`${statement} is left out: ${error.message}`));
    }
  });
}

/** Drops a schema and everything in it. */
export async function dropSchema(connectionString, schema) {
  await withClient(connectionString, (client) => client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`));
}

/** Runs `work` on a connection of its own. */
export async function withClient(connectionString, work) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
