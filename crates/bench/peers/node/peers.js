// The queues and their servers. Each is a module with one class that has prepare, producer, worker
// and clear; it is loaded only on request.

const PEERS = {
  'bullmq redis:': () => import('./peers/bullmq-redis.js'),
  'bullmq rediss:': () => import('./peers/bullmq-redis.js'),
  'bullmq postgres:': () => import('./peers/bullmq-postgres.js'),
  'bullmq postgresql:': () => import('./peers/bullmq-postgres.js'),
  'groupmq redis:': () => import('./peers/groupmq.js'),
  'groupmq rediss:': () => import('./peers/groupmq.js'),
  'pg-boss postgres:': () => import('./peers/pg-boss.js'),
  'pg-boss postgresql:': () => import('./peers/pg-boss.js'),
};

/** Creates a queue under a load, with all its names below `space`. Nothing is connected yet. */
export async function openPeer(name, load, space) {
  const url = process.env.TIDEGATE_PEER_STORE;
  if (!url) throw new Error('TIDEGATE_PEER_STORE must hold the URL of the store');
  const scheme = url.slice(0, url.indexOf(':') + 1);
  const module = PEERS[`${name} ${scheme}`];
  if (!module) throw new Error(`there is no peer ${name} on ${scheme}//`);
  const { Peer } = await module();
  return new Peer(url, load, space);
}
