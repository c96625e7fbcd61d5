// Runs the unit tests: each test/*.test.ts is bundled and given to node's own runner.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = await mkdtemp(path.join(os.tmpdir(), "kubistro-test-"));
const files = (await readdir(path.join(here, "test"))).filter((n) => n.endsWith(".test.ts"));
await build({
  entryPoints: files.map((n) => path.join(here, "test", n)),
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  sourcemap: "inline",
  logLevel: "warning",
});
const run = spawnSync(process.execPath, ["--test", ...process.argv.slice(2), ...files.map((n) => path.join(out, n.replace(/\.ts$/, ".mjs")))], { stdio: "inherit" });
await rm(out, { recursive: true });
process.exit(run.status ?? 1);
