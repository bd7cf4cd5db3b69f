/** Names as JSON has them: `deadline_ms` on the wire is `deadlineMs` here. Only the names of one
 * object and of its `fault` and `request` are changed, never those of bodies and headers inside
 * it. */

const TIMES = new Set(["as_of", "at", "until", "created_at", "finished_at", "deadline_at", "starts_at", "expires_at"]);
const NESTED = new Set(["fault", "request"]);

/** The object with the names of the wire. */
export function toWire(value: object): Record<string, unknown> {
  return renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

/** The object with the names of this language, its times as dates. */
export function fromWire<T>(value: object): T {
  const dated = Object.entries(value).map(([name, field]) => {
    if (TIMES.has(name) && typeof field === "string") return [name, new Date(field)];
    if (NESTED.has(name) && typeof field === "object" && field !== null) return [name, fromWire(field)];
    return [name, field];
  });
  const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return renamed(Object.fromEntries(dated), camel) as T;
}

function renamed(value: object, rename: (name: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [rename(name), field]));
}
