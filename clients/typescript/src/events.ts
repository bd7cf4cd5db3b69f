/** Server-sent events, resumed after a broken connection. */

import { setTimeout as sleep } from "node:timers/promises";

import { ApiError, NoResponseError } from "./errors.js";
import { backoffMs, type Transport } from "./transport.js";
import type { Fault, Result, State } from "./types.js";
import { fromWire } from "./wire.js";

export interface EventFilter {
  group?: string;
  /** Of one operation. */
  id?: string;
  kind?: string;
  /** Whether the end of an operation comes with its result and fault. */
  results?: boolean;
  /** Resumes after this event. */
  lastEventId?: string;
  signal?: AbortSignal;
}

/** A change. `reset` means that some were missed: read again what you need. */
export type Event =
  | {
      type: "operation";
      eventId: string;
      at: Date;
      id: string;
      state: State;
      group: string;
      kind: string;
      attempt: number;
      result?: Result | null;
      fault?: Fault | null;
    }
  | { type: "group"; eventId: string; at: Date; group: string; now: string }
  | { type: "limit"; eventId: string; at: Date; limit: string; now: string }
  | { type: "reset" };

/** The server sends at least a comment in this time. */
const SILENCE_MAX_MS = 45_000;

export async function* readEvents(
  transport: Transport,
  filter: EventFilter,
): AsyncGenerator<Event, void, undefined> {
  const { lastEventId, signal, ...query } = filter;
  let last = lastEventId;
  for (let failures = 0; ; failures++) {
    const connection = new AbortController();
    try {
      for await (const message of connect(transport, query, last, signal, connection)) {
        failures = 0;
        last = message.id ?? last;
        // Only where the stream is, so that it resumes there.
        if (message.data === undefined) continue;
        if (message.type === "reset") yield { type: "reset" };
        else yield { ...fromWire<object>(JSON.parse(message.data) as object), type: message.type, eventId: last } as Event;
      }
    } catch (error) {
      signal?.throwIfAborted();
      const isFinal = error instanceof ApiError && error.status < 500 && error.status !== 429;
      if (isFinal || failures >= transport.retries) throw error;
    } finally {
      connection.abort();
    }
    await sleep(backoffMs(failures, 0), undefined, signal ? { signal } : {});
  }
}

interface Message {
  type: string;
  id: string | undefined;
  data: string | undefined;
}

async function* connect(
  transport: Transport,
  query: Omit<EventFilter, "lastEventId" | "signal">,
  last: string | undefined,
  signal: AbortSignal | undefined,
  connection: AbortController,
): AsyncGenerator<Message, void, undefined> {
  const silence = setTimeout(() => connection.abort(new NoResponseError("The events fell silent.")), SILENCE_MAX_MS);
  const signals = signal ? [signal, connection.signal] : [connection.signal];
  try {
    const response = await transport.open({
      method: "GET",
      path: "/v1/events",
      query: { ...query },
      headers: { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) },
      signal: AbortSignal.any(signals),
    });
    if (!response.ok || !response.body) {
      throw new ApiError(response.status, await response.json().catch(() => null));
    }
    yield* messages(response.body, () => silence.refresh());
  } finally {
    clearTimeout(silence);
  }
}

/** Cuts a stream of bytes into messages. One that is cut short is dropped. */
async function* messages(
  body: AsyncIterable<Uint8Array>,
  heard: () => void,
): AsyncGenerator<Message, void, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body) {
    heard();
    text += decoder.decode(bytes, { stream: true });
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = parsed(block);
      if (message) yield message;
    }
  }
}

/** The message in a block of lines; `null` for a comment. */
function parsed(block: string): Message | null {
  const fields: Record<string, string> = {};
  for (const line of block.split(/\r?\n/)) {
    const [, name = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
    fields[name] = name === "data" && name in fields ? `${fields[name]}\n${value}` : value;
  }
  return fields["data"] === undefined && fields["id"] === undefined
    ? null
    : { type: fields["event"] ?? "message", id: fields["id"], data: fields["data"] };
}
