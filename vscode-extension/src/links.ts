/**
 * Positions of a made document and of the source, linked both ways: the cursor in one lights up what belongs to it in the other.
 */

import * as vscode from "vscode";

import { MADE, PROGRAM_FILE } from "./made";
import type { Server } from "./server";

interface Place {
  readonly start: { readonly line: number; readonly character: number };
  readonly end: { readonly line: number; readonly character: number };
}

interface Link {
  readonly line: number;
  readonly path: string;
  readonly uri: string;
  readonly range: Place | null;
}

interface Content {
  readonly text: string;
  readonly stale: boolean;
  readonly links: readonly Link[];
}

export class Links implements vscode.Disposable {
  private readonly lit = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("editor.wordHighlightStrongBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.wordHighlightStrongForeground"),
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly known = new Map<string, Promise<readonly Link[]>>();
  private readonly subscriptions: { dispose(): unknown }[];

  constructor(private readonly server: Server) {
    this.subscriptions = [
      this.lit,
      vscode.window.onDidChangeTextEditorSelection((event) => {
        void this.light(event.textEditor);
      }),
      server.onDidRefreshContent((uri) => {
        this.known.delete(uri.toString());
      }),
      vscode.workspace.onDidChangeTextDocument((event) => {
        if (isMade(event.document)) {
          this.known.delete(event.document.uri.toString());
          this.lightAgain(); // A new text has no colours.
        } else if (event.document.languageId === "python" || PROGRAM_FILE.test(event.document.uri.path)) {
          this.known.clear(); // The links' places are those of the text as it was.
        }
      }),
      vscode.window.onDidChangeVisibleTextEditors(() => {
        this.lightAgain();
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.known.delete(document.uri.toString());
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private lightAgain(): void {
    const editor = vscode.window.activeTextEditor;
    if (editor !== undefined) {
      void this.light(editor);
    }
  }

  private async light(from: vscode.TextEditor): Promise<void> {
    const cursor = from.selection.active;
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor === from) {
        editor.setDecorations(this.lit, []);
      } else if (isMade(from.document)) {
        const links = await this.of(from.document);
        const ranges = links
          .filter((link) => link.line === cursor.line && link.uri === editor.document.uri.toString())
          .flatMap((link) => (link.range === null ? [] : [rangeOf(link.range)]));
        show(editor, this.lit, ranges);
      } else if (isMade(editor.document)) {
        const links = await this.of(editor.document);
        const here = links.filter(
          (link) =>
            link.uri === from.document.uri.toString() &&
            link.range !== null &&
            rangeOf(link.range).contains(cursor),
        );
        const lines = new Set(innermost(here).map((link) => link.line));
        const ranges = [...lines].map((line) => editor.document.lineAt(line).range);
        show(editor, this.lit, ranges);
      }
    }
  }

  private async of(document: vscode.TextDocument): Promise<readonly Link[]> {
    const uri = document.uri.toString();
    let links = this.known.get(uri);
    if (links === undefined) {
      links = this.server
        .request<Content>("jaxsight/textDocumentContent", { uri })
        .then((content) => content?.links ?? []);
      this.known.set(uri, links);
      links.catch(() => this.known.delete(uri));
    }
    return links;
  }
}

function isMade(document: vscode.TextDocument): boolean {
  return document.uri.scheme.startsWith(MADE);
}

function rangeOf(place: Place): vscode.Range {
  return new vscode.Range(place.start.line, place.start.character, place.end.line, place.end.character);
}

/** Of nested expressions the one that the cursor is in, not all that are around it. */
function innermost(links: readonly Link[]): readonly Link[] {
  const size = (place: Place): number =>
    (place.end.line - place.start.line) * 10_000 + place.end.character - place.start.character;
  const sizes = links.map((link) => (link.range === null ? Infinity : size(link.range)));
  const least = Math.min(...sizes);
  return links.filter((_, index) => sizes[index] === least);
}

function show(editor: vscode.TextEditor, lit: vscode.TextEditorDecorationType, ranges: vscode.Range[]): void {
  editor.setDecorations(lit, ranges);
  const [first] = ranges;
  if (first !== undefined) {
    const { line } = first.start;
    // Revealing a range that is long, or far to the right, would scroll its editor sideways.
    if (!editor.visibleRanges.some((seen) => seen.start.line <= line && line <= seen.end.line)) {
      editor.revealRange(new vscode.Range(line, 0, line, 0), vscode.TextEditorRevealType.InCenter);
    }
  }
}
