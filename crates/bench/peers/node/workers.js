// The worker processes, seen from the producing one: starts them, counts their jobs and stops them.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('worker.js', import.meta.url));
/** How long no job may finish before the run is given up. */
const STALL_MS = 60_000;
/** How long a worker may take to stop before it is killed. */
const STOP_MS = 10_000;

class Workers {
  #children;
  #doneOf = new Map();
  #done = 0;
  #delays = [];
  #waiting = [];
  #broken = null;

  constructor(children, stop) {
    this.#children = children;
    if (stop.aborted) this.#break(stop.reason);
    stop.addEventListener('abort', () => this.#break(stop.reason));
    for (const child of children) {
      child.on('message', (message) => this.#moved(child, message));
      child.once('exit', (code) => this.#break(new Error(`a worker ended with ${code} before its time`)));
    }
  }

  /** Waits until at least this many jobs are done. */
  reached(jobs) {
    if (this.#broken) return Promise.reject(this.#broken);
    if (this.#done >= jobs) return undefined;
    return new Promise((resolve, reject) => this.#waiting.push({ jobs, resolve, reject }));
  }

  /** Fails all waiters when no job has finished for long. */
  watch() {
    let last = -1;
    const timer = setInterval(() => {
      if (this.#waiting.length > 0 && this.#done === last) {
        this.#break(new Error(`nothing was done for ${STALL_MS / 1_000} s, after ${last} jobs`));
      }
      last = this.#done;
    }, STALL_MS);
    timer.unref();
  }

  /** Stops those that run; returns how long jobs waited, in ms, where that is known. */
  async stop() {
    await Promise.all(this.#children.map(stopOne));
    return this.#delays;
  }

  #moved(child, { done, delays }) {
    if (delays) this.#delays = this.#delays.concat(delays);
    const before = this.#doneOf.get(child) ?? 0;
    if (!(done > before)) return;
    this.#doneOf.set(child, done);
    this.#done += done - before;
    const [due, later] = [[], []];
    for (const one of this.#waiting) (one.jobs <= this.#done ? due : later).push(one);
    this.#waiting = later;
    for (const one of due) one.resolve();
  }

  #break(error) {
    this.#broken ??= error;
    for (const one of this.#waiting.splice(0)) one.reject(error);
  }
}

async function stopOne(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.send({ stop: true });
  await ended;
  clearTimeout(timer);
}

/** Starts them and waits until they accept jobs. When `stop` is aborted, all waiters fail. */
export async function startWorkers(args, count, space, stop) {
  stop.throwIfAborted();
  const children = Array.from({ length: count }, () =>
    fork(PROGRAM, [space, ...args], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }),
  );
  await Promise.all(children.map(isReady));
  const workers = new Workers(children, stop);
  workers.watch();
  return workers;
}

async function isReady(child) {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a worker ended with ${code} before it was ready`);
  });
  await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => {});
}
