// Bundles the extension into dist/, as two files: activation reads the small one, which reads the other, with the library for language
// clients in it, when there is a server to talk to.
import { build } from "esbuild";

const CONNECTION = "./connection.js";

await build({
  entryPoints: ["src/extension.ts", "src/connection.ts"],
  outdir: "dist",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode", CONNECTION],
  // `import()` is written as a `require` that is called later: all versions of VS Code have it.
  supported: { "dynamic-import": false },
  minify: true,
  sourcemap: true,
  legalComments: "linked",
});
