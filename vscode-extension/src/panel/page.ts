/** The page that a webview shows: one script, one style sheet, and no way to the network. The layout is that of the server's page. */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

import * as vscode from "vscode";

/** Where the panel's package is built to. */
export function built(extension: vscode.Uri): vscode.Uri {
  return vscode.Uri.joinPath(extension, "dist", "panel");
}

export function page(webview: vscode.Webview, extension: vscode.Uri): string {
  const nonce = randomBytes(16).toString("base64");
  const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(built(extension), name)).toString();
  const layout = vscode.Uri.joinPath(extension, "bundled", "libs", "jaxsight", "page", "elk-worker.txt");
  const policy = [
    "default-src 'none'",
    `style-src ${webview.cspSource}`,
    `script-src 'nonce-${nonce}'`,
    "worker-src blob:",
    // These do not fall back to the default.
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${file("style.css")}">
<title>jaxsight</title>
</head>
<body>
<script type="application/octet-stream" id="jaxsight-layout">${readFileSync(layout.fsPath, "utf-8")}</script>
<script nonce="${nonce}" src="${file("panel.js")}"></script>
</body>
</html>`;
}
