// Bundles the panel into the extension's dist/panel/: a script and a style sheet, all that its page loads.
// `--tests` bundles the tests into build/ instead.
import { copyFile, mkdir, readFile, readdir } from "node:fs/promises";

import { build } from "esbuild";

const tests = process.argv.includes("--tests");
const out = "../dist/panel";

// `text:FILE` imports a file as it is: the script of the layout's worker, which a page without network can start from text alone, and the
// style that a saved picture takes along.
const texts = {
  name: "texts",
  setup(building) {
    building.onResolve({ filter: /^text:/ }, async ({ path, resolveDir, kind }) => {
      const found = await building.resolve(path.slice("text:".length), { resolveDir, kind });
      return { path: found.path, errors: found.errors, namespace: "text" };
    });
    building.onLoad({ filter: /./, namespace: "text" }, async ({ path }) => ({
      contents: await readFile(path, "utf-8"),
      loader: "text",
    }));
  },
};

const common = { bundle: true, target: "es2022", plugins: [texts] };

if (tests) {
  const names = (await readdir("test")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: names.map((name) => `test/${name}`),
    outdir: "build",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    format: "esm",
    external: ["happy-dom", "elkjs/lib/elk.bundled.js"],
  });
} else {
  await mkdir(out, { recursive: true });
  await build({
    ...common,
    entryPoints: { panel: "src/main.ts", style: "src/style.css" },
    outdir: out,
    platform: "browser",
    format: "iife",
    minify: true,
    legalComments: "none",
  });
  await copyFile("node_modules/elkjs/LICENSE.md", `${out}/elkjs.LICENSE.md`);
}
