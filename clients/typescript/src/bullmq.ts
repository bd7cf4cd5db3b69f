/** For workers of BullMQ: a throttled job waits in the delayed set and spends no attempt. */

import { DelayedError } from "bullmq";

import type { ConsumeOptions, Limits, Reservation } from "./limits.js";

/** What is needed of a job. */
export interface DelayableJob {
  moveToDelayed(timestamp: number, token?: string): Promise<unknown>;
}

/**
 * Moves a job to the delayed set for `delayMs` and throws what tells the worker so. `token` is the
 * second argument of the processor: with it the worker's lock on the job ends.
 */
export async function delayJob(job: DelayableJob, token: string | undefined, delayMs: number): Promise<never> {
  if (!(delayMs >= 0)) throw new RangeError(`a delay is a number of milliseconds, not ${delayMs}`);
  await job.moveToDelayed(Date.now() + Math.ceil(delayMs), token);
  throw new DelayedError();
}

/** Takes tokens for a job, or delays the job until they are there. */
export async function consumeOrDelay(
  limits: Limits,
  job: DelayableJob,
  token: string | undefined,
  bucket: string,
  cost = 1,
  options: ConsumeOptions = {},
): Promise<Reservation> {
  const reservation = await limits.checkAndConsume(bucket, cost, options);
  return reservation.allowed ? reservation : delayJob(job, token, reservation.delayMs);
}
