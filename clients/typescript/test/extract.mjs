// Writes the examples of README.md and of the guides to files, so that they are compiled and run.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";

const here = new URL("../", import.meta.url);
const guides = new URL("../../docs/guides/", here);
const pages = [
  ["readme", new URL("README.md", here)],
  ...readdirSync(guides).map((file) => [file.replace(/\.md$/, ""), new URL(file, guides)]),
];
const into = new URL("test/examples/", here);
rmSync(into, { recursive: true, force: true });
mkdirSync(into, { recursive: true });
for (const [name, page] of pages) {
  const blocks = [...readFileSync(page, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)];
  blocks.forEach(([, code], place) => writeFileSync(new URL(`${name}-${place + 1}.ts`, into), code));
}
