// The calls of `bench discord` through @discordjs/rest, each as soon as its dependencies exist.
// Limits are left to the library, with its default settings. Reads the calls from stdin and prints
// how long they took.

import { text } from 'node:stream/consumers';

import { REST } from '@discordjs/rest';

import { Made, filled } from './made.js';

async function main() {
  const { at, token, calls } = JSON.parse(await text(process.stdin));
  const rest = new REST({ api: `http://${at}/api`, version: '10' }).setToken(token);
  const made = new Made(calls);
  const begun = performance.now();
  const carry = async ({ method, path, body, makes, needs }) => {
    const ids = await made.ids(needs);
    const fullRoute = `/${path.slice(1).split('/').map((part) => ids.get(part) ?? part).join('/')}`;
    const answer = await rest.request({ method, fullRoute, body: filled(body, ids) });
    if (makes) made.set(makes, answer.id);
  };
  await Promise.all(calls.map(carry));
  const seconds = (performance.now() - begun) / 1_000;
  process.stdout.write(`${JSON.stringify({ calls: calls.length, seconds })}\n`);
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(`@discordjs/rest: ${error.message || error}`);
    process.exit(1);
  },
);
