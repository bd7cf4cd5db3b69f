/** Token buckets that any number of processes share, for calls that they make themselves. */

import { randomUUID } from "node:crypto";

import { ApiError } from "./errors.js";
import type { Transport } from "./transport.js";
import { fromWire, segment, toWire } from "./wire.js";

/** A bucket holds `capacity` tokens, and `refillPerS` come back each second. */
export interface Figures {
  capacity: number;
  refillPerS: number;
}

/** Another bucket to take from in the same step. */
export interface OtherBucket extends Partial<Figures> {
  name: string;
  /** 1 by default. */
  cost?: number;
}

export interface ConsumeOptions extends Partial<Figures> {
  /**
   * Figures for a bucket that does not exist yet. One that does keeps its own, which may be
   * learned: use this together with `settle`, and `capacity` and `refillPerS` otherwise.
   */
  initial?: Figures;
  /** Up to 7 other buckets: taken from all of them, or from none. */
  also?: OtherBucket[];
}

/** Whether the tokens were taken, or when to ask again. */
export interface Reservation {
  allowed: boolean;
  /** 0 if allowed; else the tokens are there after this time, unless others take them. */
  delayMs: number;
  tokensRemaining: number;
  /** What is left in the other buckets, in your order. */
  also: number[];
}

/** What a call really cost, and what the API reported. */
export interface Settlement extends Partial<Figures> {
  reserved: number;
  actual: number;
  /** What the API says is left. The lower of this and the bucket's own level counts. */
  remaining?: number;
}

/** A bucket after it was settled. */
export interface Settled extends Figures {
  tokensRemaining: number;
}

const NO_SUCH_BUCKET = "TG0012";

export class Limits {
  constructor(private readonly transport: Transport) {}

  /** Takes `cost` tokens from a bucket, or says when they will be there. It never waits. */
  async checkAndConsume(bucket: string, cost = 1, options: ConsumeOptions = {}): Promise<Reservation> {
    const { initial, also, ...figures } = options;
    const reserve = async (figures: Partial<Figures>): Promise<Reservation> => {
      const body = { ...toWire(figures), cost, with: also?.map(toWire) };
      const { with: others, ...own } = await this.post<{ with?: number[] }>(bucket, "reserve", body);
      return { ...fromWire<Omit<Reservation, "also">>(own), also: others ?? [] };
    };
    try {
      return await reserve(figures);
    } catch (error) {
      const isNew = error instanceof ApiError && error.code === NO_SUCH_BUCKET;
      if (!initial || !isNew) throw error;
      return reserve(initial);
    }
  }

  /** Corrects what was taken by what it cost, and teaches the bucket what the API reported. */
  async settle(bucket: string, settlement: Settlement): Promise<Settled> {
    return fromWire(await this.post<object>(bucket, "settle", toWire(settlement)));
  }

  private async post<T extends object>(bucket: string, verb: string, body: object): Promise<T> {
    const path = `/v1/buckets/${segment(bucket)}/${verb}`;
    return this.transport.send({ method: "POST", path, body, key: randomUUID(), expects: ["tokens_remaining"] });
  }
}
