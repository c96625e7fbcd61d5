// Bundles the page's scripts and styles into dist under hashed names and writes
// dist/manifest.json (plain name -> hashed name), which the server reads.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const dist = path.join(here, "dist");

// xterm makes style elements and style attributes, which the page's policy
// refuses. Its elements get the page's nonce, its attributes are set through
// the CSSOM. A version of xterm without these spots fails the build.
const xtermForPolicy = {
  name: "xterm-for-policy",
  setup(b) {
    b.onLoad({ filter: /@xterm[\\/]xterm[\\/]lib[\\/]xterm\.js$/ }, async ({ path: file }) => {
      let code = await readFile(file, "utf8");
      const replace = (from, to, times) => {
        const found = code.split(from).length - 1;
        if (found !== times) throw new Error(`xterm: expected ${times} times ${from}, found ${found}`);
        code = code.replaceAll(from, to);
      };
      replace(
        'this._document.createElement("style")',
        'Object.assign(this._document.createElement("style"),{nonce:document.querySelector("meta[name=csp-nonce]")?.content??""})',
        2,
      );
      replace('e.setAttribute("style",`${e.getAttribute("style")||""}${t};`)', "e.style.cssText+=`${t};`", 1);
      return { contents: code, loader: "js" };
    });
  },
};

/** All svg symbols of src/icons in one file. */
async function sprite() {
  const dir = path.join(here, "src/icons");
  const names = (await readdir(dir)).filter((n) => n.endsWith(".svg")).sort();
  const symbols = await Promise.all(
    names.map(async (n) => {
      const text = await readFile(path.join(dir, n), "utf8");
      const box = /viewBox="([^"]+)"/.exec(text)?.[1] ?? "0 0 24 24";
      const inner = text.replace(/^[\s\S]*?<svg[^>]*>/, "").replace(/<\/svg>\s*$/, "");
      return `<symbol id="${n.slice(0, -4)}" viewBox="${box}" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round">${inner.trim()}</symbol>`;
    }),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join("\n")}</svg>\n`;
}

await mkdir(dist, { recursive: true });
for (const name of await readdir(dist)) if (name !== ".keep") await rm(path.join(dist, name), { recursive: true });

const result = await build({
  entryPoints: { main: path.join(here, "src/main.ts"), style: path.join(here, "src/css/main.css"), "quizzes-worker": path.join(here, "src/quizzes-worker.ts") },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  legalComments: "none",
  loader: { ".svg": "text" },
  plugins: [xtermForPolicy],
  write: false,
  outdir: dist,
  metafile: true,
  logLevel: "warning",
});

const manifest = {};
async function emit(name, content) {
  const ext = path.extname(name);
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 10);
  const hashed = `${name.slice(0, -ext.length)}-${hash}${ext}`;
  await writeFile(path.join(dist, hashed), content);
  manifest[name] = hashed;
}
for (const file of result.outputFiles) {
  const name = path.basename(file.path);
  if (name === "main.js" || name === "quizzes-worker.js") await emit(name, file.contents);
  if (name === "style.css") await emit("main.css", file.contents);
}
await emit("icons.svg", await sprite());
await emit("favicon.svg", await readFile(path.join(here, "src/favicon.svg")));
await writeFile(path.join(dist, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
for (const [plain, hashed] of Object.entries(manifest)) console.log(`${plain} -> ${hashed}`);
