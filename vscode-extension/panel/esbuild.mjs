// Bundles the panel into the extension's dist/panel/: a script and a style sheet, all that its page loads but for the layout.
// `--page` makes one file of it for the Python package, for pages in browsers, and beside it the layout, which the extension reads, too;
// `--check` says whether these files are those of the sources. `--tests` bundles the tests into build/.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
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
  const worker = await readFile("node_modules/elkjs/lib/elk-worker.min.js");
  await made({
    "elk-worker.txt": deflateRawSync(worker, { level: 9 }).toString("base64"),
    "elkjs.LICENSE.md": await readFile("node_modules/elkjs/LICENSE.md", "utf-8"),
    "page.html": `<!DOCTYPE html>
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
<!--layout-->
<!--data-->
<script>${script}</script>
</body>
</html>
`,
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
}

/** Writes the files of the page, or says which of them are not those of the sources. */
async function made(files) {
  const differing = [];
  for (const [name, content] of Object.entries(files)) {
    const path = `${page}/${name}`;
    if (!process.argv.includes("--check")) {
      await writeFile(path, content);
    } else if ((await readFile(path, "utf-8").catch(() => "")) !== content) {
      differing.push(path);
    }
  }
  if (differing.length > 0) {
    console.error(`not built from the sources of the panel: ${differing.join(", ")}; run \`make page\``);
    process.exitCode = 1;
  }
}
