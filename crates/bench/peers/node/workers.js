// The worker process, seen from the producing one: starts it, counts its jobs and stops it.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('worker.js', import.meta.url));
/** How long no job may finish before the run is given up. */
const STALL_MS = 60_000;
/** How long a worker may take to stop before it is killed. */
const STOP_MS = 10_000;

class Worker {
  #child;
  #done = 0;
  #waiting = [];
  #broken = null;

  constructor(child, stop) {
    this.#child = child;
    if (stop.aborted) this.#break(stop.reason);
    stop.addEventListener('abort', () => this.#break(stop.reason));
    child.on('message', (message) => this.#moved(message.done ?? 0));
    child.once('exit', (code) => this.#break(new Error(`the worker ended with ${code} before its time`)));
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

  async stop() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS);
    this.#child.send({ stop: true });
    await ended;
    clearTimeout(timer);
  }

  #moved(done) {
    this.#done = Math.max(this.#done, done);
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

/** Starts it and waits until it accepts jobs. When `stop` is aborted, all waiters fail. */
export async function startWorker(args, space, stop) {
  stop.throwIfAborted();
  const child = fork(PROGRAM, [space, ...args], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the worker ended with ${code} before it was ready`);
  });
  await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => {});
  const worker = new Worker(child, stop);
  worker.watch();
  return worker;
}
