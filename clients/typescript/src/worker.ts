/** A worker: takes operations of remote kinds, executes them and reports what became of them. */

import { setTimeout as sleep } from "node:timers/promises";

import { ApiError } from "./errors.js";
import { backoffMs, type Transport } from "./transport.js";
import type { Fault } from "./types.js";

/** An operation to execute. */
export interface Job<Payload = unknown> {
  id: string;
  kind: string;
  group: string;
  payload: Payload;
  /** The number of this attempt. Above 1, an earlier one may have done part of the work. */
  attempt: number;
  /** The job to ask about, when it was reported as awaiting before. Do not start it again. */
  job: { externalId: string | null; memo: unknown; cancelRequested: boolean } | null;
  /** Lets others complete this attempt, see `awaiting`. A secret. */
  completionToken: string | null;
  /** Which of several ways to execute it was granted, and the limits that it charges. Of a
   * generation, the name is `{provider}/{key}`. */
  alternative: { name: string; limits: string[] } | null;
  /** Aborted when the operation was canceled, or when another worker may have it. */
  signal: AbortSignal;
}

/** Executes a job. What it returns is the result of the operation; see `JobError` for the rest. */
export type Handler = (job: Job) => Promise<unknown>;

export interface WorkerOptions {
  /** What executes each kind. */
  kinds: Record<string, Handler>;
  /** The most jobs at once; 16. */
  concurrency?: number;
  /** How long the server waits for a sign of this worker before others get its jobs; 30,000. */
  leaseMs?: number;
  /** Learns of what went wrong beside the jobs: a server that cannot be reached, a lost lease. */
  onError?: (error: unknown) => void;
}

/** What became of a job that did not succeed. Any other error means `retry`. */
export class JobError extends Error {
  constructor(
    /** `failed`: running it again is pointless. `retry`: it may run again, and an attempt is spent.
     * `throttled`: wait, and no attempt is spent. `unknown`: it may have taken effect. */
    readonly outcome: "failed" | "retry" | "throttled" | "unknown",
    message: string,
    /** The shortest wait, the limit that is closed, and the class of the fault. `blame` names the one
     * limit of `job.alternative` that the failure counts against, or none with an empty list; without
     * it the class decides. What is known of the attempt is kept with it. */
    readonly options: {
      afterMs?: number;
      limit?: string;
      class?: Fault["class"];
      blame?: string[];
      externalId?: string;
      memo?: unknown;
      cost?: number;
      /** Whether it took effect in spite of the failure, or may have. */
      mayHaveHappened?: boolean;
    } = {},
  ) {
    super(message);
    this.name = "JobError";
  }
}

/** A job that was accepted by someone else and ends there. */
class AwaitedJob {
  constructor(readonly settlement: { outcome: "awaiting" }) {}
}

/**
 * Return it from a handler when the job ends elsewhere: no worker is held. It ends by its completion
 * (`POST /v1/operations/{id}/complete`), or when a handler asks about it after `afterMs`, with `job.job`.
 * `cost` is what it may cost, in millionths of a unit, for the ledger.
 */
export function awaiting(
  options: { externalId?: string; memo?: unknown; afterMs?: number; timeoutMs?: number; cost?: number } = {},
): unknown {
  const { externalId, memo, afterMs, timeoutMs, cost } = options;
  const settlement = {
    outcome: "awaiting" as const,
    external_id: externalId,
    memo,
    after_ms: whole(afterMs),
    timeout_ms: whole(timeoutMs),
    cost,
  };
  return new AwaitedJob(settlement);
}

interface Claim {
  id: string;
  fence: number;
  kind: string;
  group: string;
  attempt: number;
  payload: unknown;
  alternative?: { name: string; limits: string[] };
  job?: { external_id: string | null; memo: unknown; cancel_requested: boolean };
  completion_token?: string;
}

interface Extended {
  id: string;
  held: boolean;
  cancel_requested: boolean;
}

/** The answer to a report; `null` when there was none. */
type Settled = { error?: { code: string } } | null;

/** What became of a job, for the server. */
interface Report {
  id: string;
  fence: number;
  outcome: string;
  fault?: { class: string; message: string; may_have_happened?: boolean | undefined };
}

/** A job in progress. */
interface Active {
  claim: Claim;
  stop: AbortController;
  /** When another worker may get it: counted from before the server was asked. */
  until: number;
  /** Stops it then. */
  timer: NodeJS.Timeout | undefined;
}

const WAIT_MS = 20_000;
const REPORTS_MAX = 200;
/** The longest body of reports, in characters: well under what the server reads. */
const REPORTS_LENGTH_MAX = 8 * 1024 * 1024;
/** The errors after which a report is sent again: its partition was not to be reached. */
const UNAVAILABLE = ["TG0017", "TG0018", "TG0022", "TG0023", "TG0026"];
/** The outcomes after which a job may be given to another worker. */
const NOTHING_DONE = ["returned", "canceled"];
/** How much of a message is reported, in characters. */
const MESSAGE_LENGTH_MAX = 1_000;

/** A worker. `run` returns when it was stopped and all its jobs are reported. */
export class Worker implements AsyncDisposable {
  private readonly concurrency: number;
  private readonly leaseMs: number;
  private readonly active = new Map<string, Active>();
  private readonly stopped = new AbortController();
  private readonly finished = new AbortController();
  private reports: Report[] = [];
  /** The reports that stand for refused ones: they are not replaced once more. */
  private readonly replacements = new WeakSet<Report>();
  /** Has claims extended now, not at the next third of the lease. */
  private early = new AbortController();
  private wakeReporter: () => void = () => undefined;
  private wakeTaker: () => void = () => undefined;
  private running: Promise<void> | undefined;

  constructor(
    private readonly transport: Transport,
    private readonly options: WorkerOptions,
  ) {
    this.concurrency = options.concurrency ?? 16;
    if (!(this.concurrency >= 1)) throw new RangeError("concurrency must be at least 1");
    this.leaseMs = Math.ceil(options.leaseMs ?? 30_000);
  }

  /** Works until `stop` is called. Throws when the server refuses it: a wrong token, an unknown kind. */
  run(): Promise<void> {
    this.running ??= this.work();
    return this.running;
  }

  /** Takes no more, lets the jobs in progress finish, and reports them. */
  async stop(): Promise<void> {
    this.stopped.abort();
    this.wakeTaker();
    await this.running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  private async work(): Promise<void> {
    const reporting = this.reportAll();
    const extending = this.extendAll();
    try {
      await this.takeAll();
    } finally {
      while (this.active.size > 0) await this.room();
      this.finished.abort();
      this.wakeReporter();
      await Promise.all([reporting, extending]);
    }
  }

  private async takeAll(): Promise<void> {
    for (let failures = 0; !this.stopped.signal.aborted; ) {
      const free = this.concurrency - this.active.size;
      if (free <= 0) {
        await this.room();
        continue;
      }
      try {
        const askedAt = performance.now();
        const { claims } = await this.post<{ claims: Claim[] }>("take", {
          kinds: Object.keys(this.options.kinds),
          max: Math.min(free, 1_000),
          wait_ms: WAIT_MS,
          lease_ms: this.leaseMs,
        }, WAIT_MS, this.stopped.signal);
        failures = 0;
        if (this.stopped.signal.aborted) return this.giveBack(claims);
        for (const claim of claims) this.start(claim, askedAt);
        // Counted from when it was asked for, little may be left of the lease.
        if (claims.length > 0 && performance.now() - askedAt > this.leaseMs / 3) this.early.abort();
      } catch (error) {
        if (this.stopped.signal.aborted) return;
        if (isRefusal(error)) throw error;
        this.options.onError?.(error);
        const pause = backoffMs(failures++, 0);
        await sleep(pause, undefined, { signal: this.stopped.signal }).catch(() => undefined);
      }
    }
  }

  /** Reports jobs that came after the stop: they were not started. */
  private giveBack(claims: Claim[]): void {
    this.reports.push(...claims.map(({ id, fence }) => ({ id, fence, outcome: "returned" })));
    this.wakeReporter();
  }

  /** Resolves when a job has ended. */
  private room(): Promise<void> {
    return new Promise((resolve) => (this.wakeTaker = resolve));
  }

  private start(claim: Claim, askedAt: number): void {
    const active: Active = { claim, stop: new AbortController(), until: 0, timer: undefined };
    this.active.set(key(claim), active);
    this.hold(active, askedAt);
    void this.execute(active).then((settlement) => {
      clearTimeout(active.timer);
      this.active.delete(key(claim));
      if (settlement) {
        this.reports.push({ ...settlement, id: claim.id, fence: claim.fence });
        this.wakeReporter();
      }
      this.wakeTaker();
    });
  }

  /** Keeps a job until its lease, asked for at this time, is over. */
  private hold(active: Active, askedAt: number): void {
    active.until = askedAt + this.leaseMs;
    clearTimeout(active.timer);
    active.timer = setTimeout(() => active.stop.abort(LOST), Math.max(0, active.until - performance.now()));
  }

  private async execute({ claim, stop }: Active): Promise<Omit<Report, "id" | "fence"> | null> {
    const { job } = claim;
    try {
      const handler = this.options.kinds[claim.kind];
      if (!handler) return { outcome: "returned" };
      const result = await handler({
        id: claim.id,
        kind: claim.kind,
        group: claim.group,
        payload: claim.payload,
        attempt: claim.attempt,
        job: job ? { externalId: job.external_id, memo: job.memo, cancelRequested: job.cancel_requested } : null,
        completionToken: claim.completion_token ?? null,
        alternative: claim.alternative ?? null,
        signal: stop.signal,
      });
      if (result instanceof AwaitedJob) return result.settlement;
      checkJson(result);
      const done = { outcome: "succeeded", result: result ?? null };
      return done;
    } catch (error) {
      if (stop.signal.aborted && stop.signal.reason === CANCELED) {
        // The next one to ask about an awaited job passes the cancel on.
        return { outcome: job ? "returned" : "canceled" };
      }
      return failure(error);
    }
  }

  /** Extends all claims at a third of the lease, and stops those that are lost or canceled. */
  private async extendAll(): Promise<void> {
    for (;;) {
      const pause = { signal: AbortSignal.any([this.finished.signal, this.early.signal]), ref: false };
      await sleep(this.leaseMs / 3, undefined, pause).catch(() => undefined);
      if (this.finished.signal.aborted) return;
      if (this.early.signal.aborted) this.early = new AbortController();
      const held = [...this.active.values()];
      const claims = held.map(({ claim: { id, fence } }) => ({ id, fence, lease_ms: this.leaseMs }));
      if (claims.length === 0) continue;
      const askedAt = performance.now();
      try {
        const extended = await this.post<{ claims: (Extended | { error: object } | null)[] }>("extend", { claims });
        extended.claims.forEach((one, place) => {
          const active = held[place] as Active;
          // It was not extended, and may be next time: it is held until its lease ends.
          if (one === null || "error" in one) return;
          if (one.held) this.hold(active, askedAt);
          else active.stop.abort(LOST);
          // A job that passes a cancel on is not stopped by it.
          if (one.cancel_requested && !active.claim.job?.cancel_requested) active.stop.abort(CANCELED);
        });
      } catch (error) {
        this.options.onError?.(error);
      }
    }
  }

  /** Reports what became of jobs, again until the server answers or the leases are over. */
  private async reportAll(): Promise<void> {
    for (;;) {
      if (this.reports.length === 0) {
        if (this.finished.signal.aborted) return;
        await new Promise<void>((resolve) => {
          this.wakeReporter = resolve;
          if (this.reports.length > 0 || this.finished.signal.aborted) resolve();
        });
        continue;
      }
      const end = performance.now() + this.leaseMs;
      for (const part of splitReports(this.reports.splice(0, REPORTS_MAX))) await this.send(part, end);
    }
  }

  private async send(reports: Report[], end: number): Promise<void> {
    for (let failures = 0; ; failures++) {
      const sent = reports;
      let refused: Report[] = [];
      try {
        const { settlements } = await this.post<{ settlements: Settled[] }>("settle", { settlements: sent });
        reports = sent.filter((_, place) => isUnanswered(settlements[place]));
        refused = sent.flatMap((report, place) => {
          const answer = settlements[place];
          return answer?.error && !isUnanswered(answer) ? this.replace(report, new ApiError(0, answer)) : [];
        });
      } catch (error) {
        if (isRefusal(error) && error.status !== 401 && error.status !== 403) {
          // One of them is to blame.
          if (sent.length > 1) return void (await Promise.all(sent.map((report) => this.send([report], end))));
          reports = [];
          refused = sent.flatMap((report) => this.replace(report, error));
        } else {
          this.options.onError?.(error);
          if (isRefusal(error)) return;
        }
      }
      reports = [...reports, ...refused];
      if (reports.length === 0 || performance.now() >= end) return;
      if (refused.length === 0) await sleep(backoffMs(failures, 0));
    }
  }

  /** The report to send instead of one that the server refused: without one its job would run again. */
  private replace(report: Report, error: ApiError): Report[] {
    this.options.onError?.(error);
    if (this.replacements.has(report) || NOTHING_DONE.includes(report.outcome)) return [];
    const replacement = withoutDetails(report, error.message);
    this.replacements.add(replacement);
    return [replacement];
  }

  /** Sends one request. A report or an extension that comes twice changes nothing, and a take that
   * gets lost comes back by its lease. */
  private post<T>(verb: string, body: object, waitMs = 0, signal?: AbortSignal): Promise<T> {
    const expects = [verb === "settle" ? "settlements" : "claims"];
    return this.transport.once({ method: "POST", path: `/v1/work/${verb}`, body, waitMs, signal, expects });
  }
}

const LOST = new Error("Another worker may have this job.");
const CANCELED = new Error("The operation was canceled.");

function key({ id, fence }: Claim): string {
  return `${id} ${fence}`;
}

/** Splits reports into requests that are not too long for the server. */
function splitReports(reports: Report[]): Report[][] {
  const parts: Report[][] = [];
  let length = 0;
  for (const report of reports) {
    const size = JSON.stringify(report).length;
    length += size;
    const part = parts.at(-1);
    if (part && length <= REPORTS_LENGTH_MAX) {
      part.push(report);
    } else {
      parts.push([report]);
      length = size;
    }
  }
  return parts;
}

/** Whether the partition of a report was not to be reached. */
function isUnanswered(answer: Settled | undefined): boolean {
  return !answer || UNAVAILABLE.includes(answer.error?.code ?? "");
}

function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
}

/** A report with nothing in it that a server could refuse. What was done or started fails: it would be
 * done again, and refused again. */
function withoutDetails({ id, fence, outcome, fault }: Report, why: string): Report {
  const before = fault ? fault.message : "it took effect, or was started";
  const message = `${before}; the report on it was refused: ${why}`.slice(0, MESSAGE_LENGTH_MAX);
  const plain = { awaiting: "failed", succeeded: "failed", throttled: "retry" };
  const instead = (plain as Record<string, string>)[outcome] ?? outcome;
  const given = instead === "failed" ? "validation" : "transient";
  return { id, fence, outcome: instead, fault: { class: given, message, may_have_happened: !fault } };
}

/** A time in whole milliseconds. */
function whole(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms);
}

/** A result that is not JSON fails its own job, not the reports of others. */
function checkJson(result: unknown): void {
  try {
    JSON.stringify(result);
  } catch (error) {
    const message = `the result of the handler is not JSON: ${String(error)}`;
    throw new JobError("failed", message, { mayHaveHappened: true });
  }
}

/** The report on a handler that threw. */
function failure(error: unknown): Omit<Report, "id" | "fence"> {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof JobError)) {
    return { outcome: "retry", fault: { class: "transient", message } };
  }
  const { afterMs, limit, class: given, blame, externalId, memo, cost, mayHaveHappened } = error.options;
  const usual = { failed: "validation", retry: "transient", throttled: "rate_limited", unknown: "transient" };
  const fault = { class: given ?? usual[error.outcome], message, may_have_happened: mayHaveHappened };
  const note = { external_id: externalId, memo, cost };
  const report = { outcome: error.outcome, fault, after_ms: whole(afterMs), limit, blame, ...note };
  return report;
}
