/** A real server, an upstream that counts, and a cutter between client and server. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The program under test. */
const BINARY = process.env["TIDEGATE_BIN"] ?? "tidegate";

/** A test, or the file: what happens at its end. */
interface Cleanup {
  after(end: () => void | Promise<void>): void;
}

async function listen(server: http.Server, t: Cleanup): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * An API that echoes. `/refuse` is a 422, `/hang` drops the connection without a response, and
 * `?ms=` delays the response.
 */
export class Upstream {
  /** How often each path was called. */
  readonly calls = new Map<string, number>();
  url = "";

  static async start(t: Cleanup): Promise<Upstream> {
    const upstream = new Upstream();
    const server = http.createServer(async (request, response) => {
      let body = "";
      for await (const part of request) body += String(part);
      const { pathname, searchParams } = new URL(request.url ?? "/", "http://upstream");
      upstream.calls.set(pathname, (upstream.calls.get(pathname) ?? 0) + 1);
      if (pathname === "/hang") return void request.socket.destroy();
      setTimeout(
        () => {
          response.writeHead(pathname === "/refuse" ? 422 : 200, { "content-type": "application/json" });
          response.end(JSON.stringify({ path: pathname, got: body === "" ? null : (JSON.parse(body) as unknown) }));
        },
        Number(searchParams.get("ms") ?? 0),
      );
    });
    upstream.url = await listen(server, t);
    return upstream;
  }
}

/** Passes requests on, and drops the responses of some after the server has handled them. */
export class Cutter {
  /** How many responses are dropped from now on. */
  drop = 0;
  /** How many were dropped. */
  dropped = 0;
  url = "";
  private readonly server: http.Server;

  private constructor(private readonly target: string) {
    this.server = http.createServer((request, response) => void this.pass(request, response));
  }

  static async start(t: Cleanup, target: string): Promise<Cutter> {
    const cutter = new Cutter(target);
    cutter.url = await listen(cutter.server, t);
    return cutter;
  }

  /** Breaks every connection. */
  cutAll(): void {
    this.server.closeAllConnections();
  }

  private async pass(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method, headers } = request;
    const onward = http.request(`${this.target}${request.url}`, { method, headers: { ...headers, connection: "close" } });
    response.on("close", () => onward.destroy());
    onward.on("error", () => response.destroy());
    request.pipe(onward);
    const [answer] = (await once(onward, "response").catch(() => [])) as [http.IncomingMessage?];
    if (!answer) return;
    if (this.drop > 0) {
      this.drop -= 1;
      this.dropped += 1;
      answer.resume();
      await once(answer, "end");
      request.socket.destroy();
      return;
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  }
}

/** `tidegate serve` in a folder of its own. */
export class Server {
  url = "";
  private child: ChildProcess | undefined;

  private constructor(
    private readonly dir: string,
    private readonly env: Record<string, string>,
  ) {}

  /** With this upstream, as `echo`, and with more configuration. */
  static async start(t: Cleanup, upstream: Upstream, more = "", env: Record<string, string> = {}): Promise<Server> {
    const server = new Server(mkdtempSync(join(tmpdir(), "tidegate-client-")), env);
    server.configure("127.0.0.1:0", upstream, more);
    t.after(async () => {
      await server.kill();
      rmSync(server.dir, { recursive: true, force: true });
    });
    await server.run();
    return server;
  }

  /** SIGKILL, then the same server again, under the same address. */
  async killAndRestart(upstream: Upstream): Promise<void> {
    await this.kill();
    this.configure(this.url.replace("http://", ""), upstream, "");
    await this.run();
  }

  async kill(): Promise<void> {
    if (this.child?.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }

  private configure(address: string, upstream: Upstream, more: string): void {
    const lines = [
      `[server]\nlisten = "${address}"`,
      `[store]\nurl = "file:${join(this.dir, "data")}"`,
      `[[upstream]]\nname = "echo"\nbase_url = "${upstream.url}"`,
      more,
    ];
    writeFileSync(join(this.dir, "tidegate.toml"), lines.join("\n"));
  }

  private async run(): Promise<void> {
    const command = ["serve", "--config", join(this.dir, "tidegate.toml"), "--log-level", "warn"];
    [this.child, this.url] = await startedServer(command, /tidegate serves ([^\s"]+)/, this.env);
  }
}

/** Starts the program and waits for its address. */
export async function startedServer(
  command: string[],
  address: RegExp,
  env: Record<string, string> = {},
): Promise<[ChildProcess, string]> {
  // The server reads TIDEGATE_… as its own settings.
  const rest = Object.entries(process.env).filter(([name]) => !name.startsWith("TIDEGATE_"));
  const child = spawn(BINARY, command, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...Object.fromEntries(rest), ...env },
  });
  const talk: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    talk.push(line);
    const url = address.exec(line)?.[1];
    if (url) {
      child.stderr.resume();
      return [child, url.replace(/\/$/, "")];
    }
  }
  throw new Error(`It does not serve: ${talk.join("\n")}`);
}
