/** Which function the cursor is in, from the text alone: what the palette's commands speak of. */

import type * as vscode from "vscode";

const HEAD = /^(\s*)(?:async\s+)?(def|class)\s+(\w+)/;

/** The qualified name (`Model.loss`) of the outermost function around a line, in the classes that hold it. */
export function functionAt(document: vscode.TextDocument, line: number): string | undefined {
  const heads: { kind: string; name: string }[] = [];
  let indent = Infinity;
  for (let at = line; at >= 0; at--) {
    const text = document.lineAt(at).text;
    if (text.trim() === "" || text.trimStart().startsWith("#")) {
      continue;
    }
    const found = HEAD.exec(text);
    const width = text.length - text.trimStart().length;
    if (found !== null && width < indent) {
      heads.unshift({ kind: found[2] ?? "", name: found[3] ?? "" });
    }
    // A decorator of the function below, or its first line, is inside it; lines further left are not.
    indent = Math.min(indent, found === null && at === line ? width + 1 : width);
    if (indent === 0) {
      break;
    }
  }
  const first = heads.findIndex((head) => head.kind === "def");
  return first < 0 ? undefined : heads.slice(0, first + 1).map((head) => head.name).join(".");
}
