// Bundles the panel into the extension's dist/panel/: a script and a style sheet, all that its page loads.
// `--page` makes one file of all of it for the Python package, for pages in browsers; `--tests` bundles the tests into build/.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";

import { deflateRawSync } from "node:zlib";

import { build } from "esbuild";

const tests = process.argv.includes("--tests");
const out = "../dist/panel";
const page = "../../server/jaxsight/page";

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

// `deflated:FILE` imports a file compressed: Base64 of raw deflate.
const deflated = {
  name: "deflated",
  setup(building) {
    building.onResolve({ filter: /^deflated:/ }, async ({ path, resolveDir, kind }) => {
      const found = await building.resolve(path.slice("deflated:".length), { resolveDir, kind });
      return { path: found.path, errors: found.errors, namespace: "deflated" };
    });
    building.onLoad({ filter: /./, namespace: "deflated" }, async ({ path }) => ({
      contents: deflateRawSync(await readFile(path), { level: 9 }).toString("base64"),
      loader: "text",
    }));
  },
};

const common = { bundle: true, target: "es2022", plugins: [texts, deflated] };

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
} else if (process.argv.includes("--page")) {
  const { outputFiles } = await build({
    ...common,
    entryPoints: { page: "src/page.ts", style: "src/page.css" },
    outdir: "build",
    write: false,
    platform: "browser",
    format: "iife",
    minify: true,
    legalComments: "none",
    charset: "utf8",
  });
  const text = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text.trim();
  const script = text(".js").replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const style = text(".css");
  const hash = (content) => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
  const policy = [
    "default-src 'none'",
    `style-src ${hash(style)}`,
    `script-src ${hash(script)}`,
    "worker-src blob:",
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  await writeFile(
    `${page}/page.html`,
    `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<!-- Made by jaxsight (Apache-2.0). The layout of graphs is elkjs (EPL-2.0), https://github.com/kieler/elkjs. -->
<title>jaxsight</title>
<style>${style}</style>
</head>
<body>
<!--data-->
<script>${script}</script>
</body>
</html>
`,
  );
  await copyFile("node_modules/elkjs/LICENSE.md", `${page}/elkjs.LICENSE.md`);
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
