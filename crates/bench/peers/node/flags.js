// The flags, the same for every peer: a name and whole numbers.

const NUMBERS = ['seconds', 'producers', 'workers', 'processes', 'batch', 'groups', 'payload', 'outstanding'];

/** Parses the peer's name and the load. A missing flag or one that is not a number is an error. */
export function readLoad([name, ...flags]) {
  const given = new Map();
  for (let at = 0; at < flags.length; at += 2) given.set(flags[at], flags[at + 1]);
  const load = {};
  for (const number of NUMBERS) {
    const text = given.get(`--${number}`);
    if (text === undefined) throw new Error(`--${number} is missing`);
    if (!/^\d+$/.test(text)) throw new Error(`--${number} must be a whole number, not ${JSON.stringify(text)}`);
    load[number] = Number(text);
  }
  return { name, load };
}
