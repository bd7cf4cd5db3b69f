/** Client for Tidegate. */

export { Tidegate, type WaitOptions } from "./client.js";
export * from "./entities.js";
export * from "./errors.js";
export type { Event, EventFilter } from "./events.js";
export { Lease, Leases, type LeaseOptions } from "./leases.js";
export * from "./limits.js";
export type { Options } from "./transport.js";
export type * from "./types.js";
export { awaiting, type Handler, type Job, JobError, Worker, type WorkerOptions } from "./worker.js";
