/** One request to the server, retried until it is answered. Every POST carries a key, so a retry
 * after a lost response is safe: the server recognizes it. */

import { setTimeout as sleep } from "node:timers/promises";

import { ApiError, NoResponseError, TidegateError } from "./errors.js";

/** How to reach the server. */
export interface Options {
  /** Its address: `TIDEGATE_SERVER` from the environment, else `http://127.0.0.1:7400`. */
  server?: string;
  /** The bearer token: `TIDEGATE_TOKEN` from the environment, else none. */
  token?: string;
  /** How long one try may take, beside the time that the server was asked to wait; 10,000. */
  timeoutMs?: number;
  /** How often a request is tried again; 7. */
  retries?: number;
  /** Another `fetch`: for a proxy, for tracing, for tests. */
  fetch?: typeof fetch;
}

/** One request. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  query?: Record<string, unknown>;
  body?: object;
  /** The `Idempotency-Key` of a POST. */
  key?: string | undefined;
  headers?: Record<string, string>;
  /** How long the server was asked to wait. */
  waitMs?: number;
  signal?: AbortSignal | undefined;
  /** The fields that the response has, if it comes from Tidegate. */
  expects: readonly string[];
  /** Whether the body of an error status is an answer all the same. */
  isAnswer?: (body: unknown) => boolean;
}

const BACKOFF_MS = 200;
const BACKOFF_MAX_MS = 5_000;
/** Statuses after which the same request may succeed. */
const RETRIED = new Set([408, 425, 429, 502, 503, 504]);
const IN_PROGRESS = "IDEMPOTENCY_KEY_PROCESSING";

export class Transport {
  readonly retries: number;
  private readonly server: string;
  private readonly token: string | undefined;
  private readonly timeoutMs: number;
  private readonly fetch: typeof fetch;

  constructor(options: Options) {
    this.server = checkedAddress(options.server ?? process.env["TIDEGATE_SERVER"] ?? "http://127.0.0.1:7400");
    this.token = checkedToken(options.token ?? process.env["TIDEGATE_TOKEN"]);
    this.timeoutMs = Math.ceil(options.timeoutMs ?? 10_000);
    this.retries = options.retries ?? 7;
    this.fetch = options.fetch ?? fetch;
  }

  /** Sends the request, again if necessary, and returns the JSON of its response. */
  async send<T>(call: Call): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const reply = await this.tryOnce(call);
      if (reply.done) return reply.value as T;
      call.signal?.throwIfAborted();
      if (!reply.retry || attempt >= this.retries) throw reply.error;
      await sleep(backoffMs(attempt, reply.retryAfterMs), undefined, call.signal ? { signal: call.signal } : {});
    }
  }

  /** Sends the request one time. */
  async once<T>(call: Call): Promise<T> {
    const reply = await this.tryOnce(call);
    if (reply.done) return reply.value as T;
    throw reply.error;
  }

  /** Opens a stream. It has no timeout and is not retried. */
  open(call: Omit<Call, "expects">): Promise<Response> {
    return this.fetch(this.url(call), { ...this.init(call), signal: call.signal ?? null });
  }

  private async tryOnce(call: Call): Promise<Reply> {
    const timeout = AbortSignal.timeout(this.timeoutMs + (call.waitMs ?? 0));
    const signal = call.signal ? AbortSignal.any([call.signal, timeout]) : timeout;
    // What cannot be written as JSON is the caller's mistake, and nothing was sent.
    const init = this.init(call);
    try {
      const response = await this.fetch(this.url(call), { ...init, signal });
      const body = parsed(await response.text());
      const isAnswer = response.ok || call.isAnswer?.(body);
      if (isAnswer && body !== undefined) return checked(call, body);
      const error = new ApiError(response.status, body);
      // JSON that was cut short; a page of another server would be the same again.
      const isCut = response.ok && response.headers.get("content-type")?.includes("json") === true;
      const retry = RETRIED.has(response.status) || error.code === IN_PROGRESS || isCut;
      return { done: false, error, retry, retryAfterMs: retryAfterMs(response) };
    } catch (cause) {
      const reason = timeout.aborted ? "not in time" : String(cause instanceof Error ? cause.message : cause);
      const error = new NoResponseError(`No response to ${call.method} ${call.path}: ${reason}`, { cause });
      return { done: false, error, retry: true, retryAfterMs: 0 };
    }
  }

  private url(call: Omit<Call, "expects">): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    return `${this.server}${call.path}${query.size > 0 ? `?${query}` : ""}`;
  }

  private init(call: Omit<Call, "expects">): RequestInit {
    const headers: Record<string, string> = { ...call.headers };
    if (this.token) headers["authorization"] = `Bearer ${this.token}`;
    if (call.key) headers["idempotency-key"] = call.key;
    const init: RequestInit = { method: call.method, headers, redirect: "manual" };
    if (!call.body) return init;
    headers["content-type"] = "application/json";
    return { ...init, body: JSON.stringify(call.body) };
  }
}

type Reply =
  | { done: true; value: unknown }
  | { done: false; error: TidegateError; retry: boolean; retryAfterMs: number };

/** The wait before the next try: a random part of a bound that doubles, after what the server asked
 * for. */
export function backoffMs(attempt: number, retryAfterMs: number, random = Math.random): number {
  return retryAfterMs + random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** attempt);
}

/** The address of a server, or what is wrong with it. */
function checkedAddress(server: string): string {
  const url = URL.canParse(server) ? new URL(server) : null;
  if (url?.host && ["http:", "https:"].includes(url.protocol)) return server.replace(/\/+$/, "");
  throw new TidegateError(`"${server}" is not a valid server address: it looks like http://127.0.0.1:7400.`);
}

/** The token without the line break of the file that it came from. An error must not show it. */
function checkedToken(token: string | undefined): string | undefined {
  const trimmed = token?.trim();
  if (trimmed === undefined || /^[\x21-\x7e]*$/.test(trimmed)) return trimmed;
  throw new TidegateError("The token has characters that a header cannot have.");
}

/** The response, if it is one of Tidegate's. */
function checked(call: Call, body: unknown): Reply {
  const isOurs = typeof body === "object" && body !== null && call.expects.every((name) => name in body);
  if (isOurs) return { done: true, value: body };
  const error = new TidegateError(`The response to ${call.method} ${call.path} is not one of Tidegate's.`);
  return { done: false, error, retry: false, retryAfterMs: 0 };
}

/** `undefined` when a response was cut short or does not come from Tidegate. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** `Retry-After` in seconds or as a date; 0 without one. */
function retryAfterMs(response: Response): number {
  const header = response.headers.get("retry-after");
  if (header === null) return 0;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? 0 : Math.max(0, ms);
}
