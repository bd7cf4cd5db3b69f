/** A name that one process holds at a time, renewed beside the work. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { LeaseLostError } from "./errors.js";
import type { Transport } from "./transport.js";
import { segment } from "./wire.js";

export interface LeaseOptions {
  /** How long it stays taken when this process dies; 30,000. */
  ttlMs?: number;
  /** How long to wait while another holds it; 0: not at all. */
  waitMs?: number;
  /** Stops waiting. */
  signal?: AbortSignal;
}

interface LeaseReply {
  held: boolean;
  token: string | null;
  fence: number | null;
}

export class Leases {
  constructor(private readonly transport: Transport) {}

  /** Takes the lease and renews it until it is released or lost. `null` if another holds it. */
  async acquire(name: string, options: LeaseOptions = {}): Promise<Lease | null> {
    const ttlMs = Math.ceil(options.ttlMs ?? 30_000);
    const end = performance.now() + (options.waitMs ?? 0);
    const pauseMs = Math.min(1_000, Math.max(20, ttlMs / 10));
    for (;;) {
      const askedAt = performance.now();
      const reply = await this.post<LeaseReply>(name, "acquire", { ttl_ms: ttlMs }, options.signal);
      if (reply.held && reply.token !== null && reply.fence !== null) {
        return new Lease(name, reply.fence, ttlMs, askedAt, reply.token, this.post.bind(this));
      }
      if (performance.now() + pauseMs > end) return null;
      await sleep(pauseMs, undefined, options.signal ? { signal: options.signal } : {});
    }
  }

  /**
   * Does the work while it holds the lease, and releases it. Pass `lease.signal` to what the work
   * awaits: it is aborted when the lease is lost. Throws `LeaseLostError` when another holds it, or
   * when it was lost before the work was done.
   */
  async hold<T>(name: string, work: (lease: Lease) => Promise<T>, options: LeaseOptions = {}): Promise<T> {
    const lease = await this.acquire(name, options);
    if (!lease) throw new LeaseLostError(name, `Another holds the lease ${name}.`);
    try {
      const done = await work(lease);
      lease.signal.throwIfAborted();
      return done;
    } catch (error) {
      throw lease.signal.aborted ? lease.signal.reason : error;
    } finally {
      await lease.release();
    }
  }

  /** Renewing and releasing twice is the same as once; acquiring is not. */
  private async post<T>(name: string, verb: string, body: object, signal?: AbortSignal): Promise<T> {
    const path = `/v1/leases/${segment(name)}/${verb}`;
    const key = verb === "acquire" ? randomUUID() : undefined;
    const expects = verb === "release" ? ["released"] : ["held"];
    return this.transport.send({ method: "POST", path, body, key, signal, expects });
  }
}

type Post = <T>(name: string, verb: string, body: object, signal?: AbortSignal) => Promise<T>;

/** A lease that is held. With `await using` it is released at the end of its block. */
export class Lease implements AsyncDisposable {
  /** Aborted, with a `LeaseLostError`, before the lease expires on the server. */
  readonly signal: AbortSignal;
  private readonly lost = new AbortController();
  private readonly stopped = new AbortController();
  private readonly renewing: Promise<void>;

  constructor(
    readonly name: string,
    /** Grows with every holder. Pass it to what you write to, and let that refuse smaller ones. */
    readonly fence: number,
    private readonly ttlMs: number,
    askedAt: number,
    private readonly token: string,
    private readonly post: Post,
  ) {
    this.signal = this.lost.signal;
    this.renewing = this.renew(askedAt);
  }

  /** Gives it back. It does not throw: if the server cannot be told, the lease expires. */
  async release(): Promise<void> {
    if (this.stopped.signal.aborted) return;
    this.stopped.abort();
    await this.renewing;
    if (this.signal.aborted) return;
    const patience = AbortSignal.timeout(this.ttlMs);
    await this.post(this.name, "release", { token: this.token }, patience).catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Renews at a third of its time. Time counts from before the server was asked, so that the
   * holder stops before another can begin. */
  private async renew(askedAt: number): Promise<void> {
    const body = { token: this.token, ttl_ms: this.ttlMs };
    let end = askedAt + this.ttlMs;
    try {
      for (;;) {
        await sleep(Math.max(0, end - (this.ttlMs * 2) / 3 - performance.now()), undefined, {
          signal: this.stopped.signal,
          ref: false,
        });
        const now = performance.now();
        const until = AbortSignal.timeout(Math.max(0, Math.floor(end - now)));
        const signal = AbortSignal.any([this.stopped.signal, until]);
        const reply = await this.post<LeaseReply>(this.name, "renew", body, signal);
        if (!reply.held) throw new LeaseLostError(this.name, `The lease ${this.name} was lost.`);
        end = now + this.ttlMs;
      }
    } catch (error) {
      if (this.stopped.signal.aborted) return;
      const reason = new LeaseLostError(this.name, `The lease ${this.name} could not be renewed.`);
      this.lost.abort(error instanceof LeaseLostError ? error : Object.assign(reason, { cause: error }));
    }
  }
}
