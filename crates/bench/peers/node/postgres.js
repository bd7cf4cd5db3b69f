// What the peers on PostgreSQL share: a server at rest before, a schema that goes afterwards.

import pg from 'pg';

/** Connections of each of the two processes. */
export const POOL_MAX = 20;

/** Vacuums and writes a checkpoint now, so that what was done before is not tidied up while the peer is measured. */
export async function bringToRest(connectionString) {
  await withClient(connectionString, async (client) => {
    for (const statement of ['VACUUM ANALYZE', 'CHECKPOINT']) {
      // A user who may not do this measures all the same.
      await client.query(statement).catch((error) => console.error(`${statement} is left out: ${error.message}`));
    }
  });
}

/** Removes a schema with all that is in it. */
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
