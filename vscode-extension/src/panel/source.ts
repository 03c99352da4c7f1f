/** The source as the panel speaks of it: places that are lit, and shown where they are not seen. */

import * as vscode from "vscode";

import type { Place } from "../../panel/src/messages";

const SCHEMES: ReadonlySet<string> = new Set(["file", "untitled", "vscode-notebook-cell"]);

export class Source implements vscode.Disposable {
  private readonly lit = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("editor.wordHighlightStrongBackground"),
    border: "1px solid",
    borderColor: new vscode.ThemeColor("editor.wordHighlightStrongBorder"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.wordHighlightStrongForeground"),
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });

  dispose(): void {
    this.lit.dispose();
  }

  /** Lights nothing any more. */
  clear(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      editor.setDecorations(this.lit, []);
    }
  }

  /** Lights places, and brings the first into view; `focus`: the cursor goes there. */
  async show(places: readonly Place[], focus: boolean): Promise<void> {
    this.clear();
    const [first] = places.filter((place) => isSource(place.uri));
    if (first === undefined) {
      return;
    }
    const editor = await editorOf(first.uri, focus);
    for (const each of vscode.window.visibleTextEditors) {
      const uri = each.document.uri.toString();
      each.setDecorations(
        this.lit,
        places.filter((place) => same(place.uri, uri)).map((place) => rangeOf(place)),
      );
    }
    const range = rangeOf(first);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    if (focus) {
      editor.selection = new vscode.Selection(range.start, range.start);
    }
  }
}

async function editorOf(uri: string, focus: boolean): Promise<vscode.TextEditor> {
  const there = vscode.window.visibleTextEditors.find((editor) => same(editor.document.uri.toString(), uri));
  if (there !== undefined && !focus) {
    return there;
  }
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  return vscode.window.showTextDocument(document, {
    viewColumn: there?.viewColumn ?? vscode.ViewColumn.One,
    preserveFocus: !focus,
  });
}

/** Whether a URI is of a document that functions are written in; the page opens nothing else. */
export function isSource(uri: string): boolean {
  return SCHEMES.has(vscode.Uri.parse(uri).scheme);
}

/** Whether two spellings name one document: what is encoded in a URI differs between the two sides. */
export function same(one: string, other: string): boolean {
  return one === other || vscode.Uri.parse(one).toString() === vscode.Uri.parse(other).toString();
}

function rangeOf({ range: { start, end } }: Place): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}
