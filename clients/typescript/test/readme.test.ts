/** The examples of README.md, run as they are against `tidegate demo`. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { startedServer } from "./support.js";

const [demo, url] = await startedServer(
  ["demo", "--listen", "127.0.0.1:0", "--for", "120"],
  /tidegate demo: open (\S+)/,
);
after(async () => {
  demo.kill("SIGKILL");
  await once(demo, "exit");
});

const examples = new URL("./examples/", import.meta.url);
const files = readdirSync(examples).filter((file) => /^readme-\d+\.js$/.test(file));
assert.ok(files.length > 0, "README.md has no examples");

for (const file of files) {
  test(file, async () => {
    const env = { ...process.env, TIDEGATE_SERVER: url };
    const { stdout } = await promisify(execFile)("node", [fileURLToPath(new URL(file, examples))], { env });
    assert.notEqual(stdout, "", "it prints what it got");
  });
}
