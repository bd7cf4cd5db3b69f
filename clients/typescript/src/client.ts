/** The client: operations, and the way to limits, leases, entities and events. */

import { randomUUID } from "node:crypto";

import { Entities } from "./entities.js";
import {
  ApiError,
  OperationCanceledError,
  OperationFailedError,
  OutcomeUnknownError,
  WaitTimeoutError,
} from "./errors.js";
import { type Event, type EventFilter, readEvents } from "./events.js";
import { Leases } from "./leases.js";
import { Limits } from "./limits.js";
import { type Options, Transport } from "./transport.js";
import type {
  Accepted,
  CommandOptions,
  Completed,
  CompletionOptions,
  Group,
  Operation,
  OperationFilter,
  State,
  Submission,
  Why,
} from "./types.js";
import { fromWire, segment, toWire } from "./wire.js";
import { Worker, type WorkerOptions } from "./worker.js";

/** How long to wait, and who may stop it. */
export interface WaitOptions {
  /** Without one it waits as long as it takes. */
  timeoutMs?: number;
  /** Stops waiting. An operation that was accepted goes on. */
  signal?: AbortSignal;
}

/** How long the server is asked to wait in one request. */
const WAIT_MS = 25_000;
/** How long its response may be on the way when the time is over: it brings the id. */
const GRACE_MS = 1_000;
/** What every operation has. */
const OPERATION = ["id", "state"];
const SETTLED = new Set<State>(["succeeded", "failed", "canceled", "unknown"]);

export class Tidegate {
  /** Token buckets for calls that you make yourself. */
  readonly limits: Limits;
  /** Names that one process holds at a time. */
  readonly leases: Leases;
  /** Entities that other modules own. */
  readonly entities: Entities;
  private readonly transport: Transport;

  constructor(options: Options = {}) {
    this.transport = new Transport(options);
    this.limits = new Limits(this.transport);
    this.leases = new Leases(this.transport);
    this.entities = new Entities(this.transport);
  }

  /** Submits an operation. When it returns, the operation is accepted and durable. */
  async submit(submission: Submission): Promise<Accepted> {
    const accepted = await this.transport.send<object>({
      method: "POST",
      path: "/v1/operations",
      body: keyed(submission),
      expects: OPERATION,
    });
    return withoutOwnRetry(fromWire<Accepted>(accepted), submission);
  }

  /**
   * Submits an operation, waits for its end and returns it with its result. Throws
   * `OperationFailedError`, `OperationCanceledError` or `OutcomeUnknownError` when it ended
   * otherwise, and `WaitTimeoutError` when it has not ended in time.
   */
  async call<Body = unknown>(submission: Submission, options: WaitOptions = {}): Promise<Operation<Body>> {
    const body = keyed(submission);
    const wait = new Wait(options);
    try {
      const first = await this.transport.send<object>({
        method: "POST",
        path: "/v1/operations",
        query: { wait_ms: wait.nextMs() },
        body,
        waitMs: WAIT_MS,
        signal: wait.signal,
        expects: OPERATION,
      });
      return succeeded(await this.settled<Body>(fromWire(first), wait));
    } catch (error) {
      throw wait.explained(error, body.dedupe_key);
    }
  }

  /** Waits until an operation has ended or its outcome is unknown, and returns it. */
  async wait<Body = unknown>(id: string, options: WaitOptions = {}): Promise<Operation<Body>> {
    const wait = new Wait(options, id);
    try {
      return await this.settled<Body>(await this.look<Body>(id, wait), wait);
    } catch (error) {
      throw wait.explained(error, null);
    }
  }

  /**
   * Submits up to 1,000 operations. Each is accepted or refused on its own: the results are in the
   * same order, and a refused one is an `ApiError`.
   */
  async batch(submissions: readonly Submission[]): Promise<(Accepted | ApiError)[]> {
    const { operations } = await this.transport.send<{ operations: object[] }>({
      method: "POST",
      path: "/v1/operations/batch",
      body: { operations: submissions.map(keyed) },
      expects: ["operations"],
    });
    return operations.map((member, place) =>
      "error" in member
        ? new ApiError(0, member)
        : withoutOwnRetry(fromWire<Accepted>(member), submissions[place] as Submission),
    );
  }

  /** The operation as it is now. */
  async get<Body = unknown>(id: string): Promise<Operation<Body>> {
    const path = operationPath(id);
    return fromWire(await this.transport.send<object>({ method: "GET", path, expects: OPERATION }));
  }

  /** Operations, newest first, without their results; page after page as you read on. */
  async *list(filter: OperationFilter = {}): AsyncGenerator<Operation, void, undefined> {
    const { state, createdAfter, createdBefore, ...rest } = filter;
    let cursor: string | undefined;
    do {
      const page = await this.transport.send<{ operations: object[]; next_cursor: string | null }>({
        method: "GET",
        path: "/v1/operations",
        query: {
          ...(toWire(rest) as Record<string, string>),
          state: Array.isArray(state) ? state.join(",") : state,
          created_after: createdAfter?.toISOString(),
          created_before: createdBefore?.toISOString(),
          limit: 200,
          cursor,
        },
        expects: ["operations", "next_cursor"],
      });
      yield* page.operations.map((operation) => fromWire<Operation>(operation));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** What an operation waits for. */
  async why(id: string): Promise<Why> {
    const path = `${operationPath(id)}/why`;
    return fromWire(await this.transport.send<object>({ method: "GET", path, expects: ["waiting_for"] }));
  }

  /** Cancels an operation; one that is running is asked to stop. */
  cancel(id: string, options: CommandOptions = {}): Promise<Operation> {
    return this.command(id, "cancel", { reason: options.reason });
  }

  /** Runs a failed or canceled operation again, at the end of its group, or as the first if the group is held for it. */
  rerun(id: string, options: CommandOptions = {}): Promise<Operation> {
    return this.command(id, "rerun", { reason: options.reason });
  }

  /** Records what happened to an operation whose outcome is unknown. `result`, any JSON, is kept as
   * the body of its result, if it succeeded. */
  resolve(
    id: string,
    as: "succeeded" | "failed" | "repeat",
    options: { result?: unknown } & CommandOptions = {},
  ): Promise<Operation> {
    return this.command(id, "resolve", { as, result: options.result, reason: options.reason });
  }

  /** Reports how a job that ends elsewhere ended; needs the scope `operate`, or its token. */
  async complete<Body = unknown>(
    id: string,
    outcome: "succeeded" | "failed" | "retry",
    options: CompletionOptions = {},
  ): Promise<Completed<Body>> {
    const { result, fault, token } = options;
    const wire = await this.transport.send<{ applied: boolean }>({
      method: "POST",
      path: `${operationPath(id)}/complete`,
      body: { outcome, result, fault },
      // With its token, the first report counts, however often it is sent.
      ...(token === undefined ? { key: randomUUID() } : { headers: { "tidegate-completion-token": token } }),
      expects: [...OPERATION, "applied"],
    });
    const { applied, ...operation } = wire;
    return { applied, operation: fromWire(operation) };
  }

  /** Pauses a group. A name that no operation has is refused, unless `create` is true. */
  async pause(group: string, options: { by?: string; reason?: string; create?: boolean } = {}): Promise<Group> {
    return this.ofGroup(group, "pause", options);
  }

  /** Resumes a group. */
  async resume(group: string, options: CommandOptions = {}): Promise<Group> {
    return this.ofGroup(group, "resume", { reason: options.reason });
  }

  /** A worker for operations of remote kinds: `await tidegate.worker({ kinds: { resize } }).run()`. */
  worker(options: WorkerOptions): Worker {
    return new Worker(this.transport, options);
  }

  /** Changes as they happen. It reconnects and resumes where it was; leave the loop to end it. */
  events(filter: EventFilter = {}): AsyncGenerator<Event, void, undefined> {
    return readEvents(this.transport, filter);
  }

  private async command(id: string, verb: string, body: object): Promise<Operation> {
    const path = `${operationPath(id)}/${verb}`;
    const call = { method: "POST", path, body, key: randomUUID(), expects: OPERATION } as const;
    return fromWire(await this.transport.send<object>(call));
  }

  private async ofGroup(group: string, verb: string, body: object): Promise<Group> {
    const path = `/v1/groups/${segment(group)}/${verb}`;
    const { group: name, state, depth } = await this.transport.send<Omit<Group, "name"> & { group: string }>({
      method: "POST",
      path,
      body,
      key: randomUUID(),
      expects: ["group", "state", "depth"],
    });
    return { name, state, depth };
  }

  private async settled<Body>(operation: Operation<Body>, wait: Wait): Promise<Operation<Body>> {
    wait.id = operation.id;
    while (!SETTLED.has(operation.state)) {
      if (wait.isOver()) throw new WaitTimeoutError(operation.id, operation.dedupeKey ?? null);
      operation = await this.look<Body>(operation.id, wait);
    }
    return operation;
  }

  private async look<Body>(id: string, wait: Wait): Promise<Operation<Body>> {
    const found = await this.transport.send<object>({
      method: "GET",
      path: operationPath(id),
      query: { wait_ms: wait.nextMs() },
      waitMs: WAIT_MS,
      signal: wait.signal,
      expects: OPERATION,
    });
    return fromWire(found);
  }
}

/** A wait for one operation, bounded by a time and by the caller's signal. */
class Wait {
  id: string | null;
  readonly signal: AbortSignal | undefined;
  private readonly timeout: AbortSignal | undefined;
  private readonly end: number;

  constructor(options: WaitOptions, id: string | null = null) {
    this.id = id;
    const timeoutMs = options.timeoutMs ?? Infinity;
    this.end = performance.now() + timeoutMs;
    this.timeout = timeoutMs === Infinity ? undefined : AbortSignal.timeout(Math.ceil(timeoutMs) + GRACE_MS);
    const signals = [this.timeout, options.signal].filter((signal) => signal !== undefined);
    this.signal = signals.length > 0 ? AbortSignal.any(signals) : undefined;
  }

  isOver(): boolean {
    return performance.now() >= this.end;
  }

  /** How long the server should wait in the next request. */
  nextMs(): number {
    return Math.round(Math.min(WAIT_MS, Math.max(1, this.end - performance.now())));
  }

  /** The error as the caller should see it. */
  explained(error: unknown, dedupeKey: string | null): unknown {
    const isOurs = this.timeout?.aborted && this.signal?.reason === this.timeout.reason;
    const isAbort = error instanceof Error && (error.name === "AbortError" || error === this.signal?.reason);
    if (isOurs && isAbort) return new WaitTimeoutError(this.id, dedupeKey);
    return isAbort && this.signal?.aborted ? this.signal.reason : error;
  }
}

/** The submission for the wire, with a key: a retry of this call is recognized by it. */
function keyed(submission: Submission): Record<string, unknown> & { dedupe_key: string } {
  return { ...toWire(submission), dedupe_key: ownKey(submission) ?? `call-${randomUUID()}` };
}

/** The key that the caller gave, also under its name on the wire. */
function ownKey(submission: Submission): string | null | undefined {
  return toWire(submission)["dedupe_key"] as string | null | undefined;
}

/** With a key that the client made, only its own retry can have come first. */
function withoutOwnRetry(accepted: Accepted, submission: Submission): Accepted {
  return ownKey(submission) ? accepted : { ...accepted, deduplicated: false };
}

function succeeded<Body>(operation: Operation<Body>): Operation<Body> {
  if (operation.state === "succeeded") return operation;
  if (operation.state === "failed") throw new OperationFailedError(operation);
  if (operation.state === "canceled") throw new OperationCanceledError(operation);
  throw new OutcomeUnknownError(operation);
}

function operationPath(id: string): string {
  return `/v1/operations/${segment(id)}`;
}
