/** Names in paths, and names as JSON has them: `deadline_ms` on the wire is `deadlineMs` here. Only the names of one
 * object and of its `fault` and `request` are changed, never those of bodies and headers inside
 * it. */

import { TidegateError } from "./errors.js";

const TIMES = new Set(["as_of", "at", "until", "created_at", "finished_at", "deadline_at", "starts_at", "expires_at"]);
const NESTED = new Set(["fault", "request"]);
/** What every result of an HTTP call or of a worker has. */
const RESPONSE = ["status", "headers", "body"];

/** A name as a part of a path. `.` and `..` are refused: URL libraries take them for steps of the
 * path, however they are written, and another route would be called. */
export function segment(name: string): string {
  if (name === "." || name === "..") throw new TidegateError(`"${name}" cannot be a name in the path of a request.`);
  return encodeURIComponent(name);
}

/** The object with the names of the wire. */
export function toWire(value: object): Record<string, unknown> {
  return renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

/** The object with the names of this language, its times as dates. */
export function fromWire<T>(value: object): T {
  const dated = Object.entries(value).map(([name, field]) => {
    if (TIMES.has(name) && typeof field === "string") return [name, new Date(field)];
    if (name === "result") return [name, readResult(field)];
    if (NESTED.has(name) && typeof field === "object" && field !== null) return [name, fromWire(field)];
    return [name, field];
  });
  const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return renamed(Object.fromEntries(dated), camel) as T;
}

/** A result of a kind that is no single HTTP call has a shape of its own: it is the body. */
function readResult(wire: unknown): unknown {
  if (wire === null || wire === undefined) return wire;
  const isResponse = typeof wire === "object" && RESPONSE.every((name) => name in wire);
  return isResponse ? wire : { status: null, headers: {}, body: wire };
}

function renamed(value: object, rename: (name: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [rename(name), field]));
}
