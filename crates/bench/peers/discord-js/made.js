// Ids of created objects, by the names that stand for them in paths and bodies.

/** A promise for each object that a call creates. */
export class Made {
  #ids = new Map();

  constructor(calls) {
    for (const { makes } of calls) {
      if (!makes) continue;
      let set;
      const id = new Promise((resolve) => {
        set = resolve;
      });
      this.#ids.set(makes, { id, set });
    }
  }

  /** Returns the ids of these, once all are known. */
  async ids(names) {
    const known = await Promise.all(names.map(async (name) => [name, await this.#of(name).id]));
    return new Map(known);
  }

  set(name, id) {
    this.#of(name).set(id);
  }

  #of(name) {
    const found = this.#ids.get(name);
    if (!found) throw new Error(`nothing makes ${name}`);
    return found;
  }
}

/** Returns a body with names replaced by ids. */
export function filled(value, ids) {
  if (typeof value === 'string') return ids.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => filled(item, ids));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, ids)]));
}
