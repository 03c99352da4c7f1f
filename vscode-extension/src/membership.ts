/**
 * Which kernel each line became part of, as colours beside the line numbers, for the function at the cursor. Off until it is asked for.
 *
 * VS Code moves the colours with the text; they are drawn anew when there is a fresh answer and at no other time, so nothing flickers while
 * someone types.
 */

import * as vscode from "vscode";

import type { Drawn, Shown } from "../panel/src/messages";
import type { Server } from "./server";
import { SECTION } from "./settings";

const SETTING = "kernelColours";
/** Milliseconds that the cursor rests before another function is asked for. */
const REST = 150;
/** Readable on light and dark; neighbours are far apart, also for those who see few colours. */
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b5a900"];
/** More stripes than that are none. */
const STRIPES = 4;

export class Membership implements vscode.Disposable {
  /** One kind of decoration for each set of kernels that a line is in. */
  private readonly kinds = new Map<string, vscode.TextEditorDecorationType>();
  private readonly subscriptions: { dispose(): unknown }[];
  private asking: vscode.CancellationTokenSource | undefined;
  private resting: NodeJS.Timeout | undefined;
  private coloured: vscode.TextEditor | undefined;

  constructor(private readonly server: Server) {
    this.subscriptions = [
      vscode.commands.registerCommand("jaxsight.toggleKernelColours", () => toggle()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(`${SECTION}.${SETTING}`)) {
          this.soon();
        }
      }),
      vscode.window.onDidChangeTextEditorSelection(() => {
        this.soon();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.soon();
      }),
      server.onDidRefreshPanel(() => {
        this.soon();
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.resting);
    this.asking?.cancel();
    vscode.Disposable.from(...this.subscriptions, ...this.kinds.values()).dispose();
  }

  private soon(): void {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.ask().catch(() => undefined); // It was given up, or the server is gone: the colours stay.
    }, REST);
  }

  private async ask(): Promise<void> {
    this.asking?.cancel();
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== "python") {
      return;
    }
    if (!isOn(editor.document.uri)) {
      this.clear();
      return;
    }
    const asking = (this.asking = new vscode.CancellationTokenSource());
    const { line, character } = editor.selection.active;
    const uri = editor.document.uri.toString();
    const version = editor.document.version;
    const shown = await this.server.request<Shown | null>(
      "jaxsight/panel",
      { uri, position: { line, character } },
      asking.token,
    );
    // An answer about another text than this one comes again, when there is a fresh one.
    if (asking.token.isCancellationRequested || editor.document.version !== version || shown?.stale === true) {
      return;
    }
    // Between functions the last colours stay.
    if (shown?.drawn) {
      this.colour(editor, shown.drawn);
    }
  }

  private colour(editor: vscode.TextEditor, drawn: Drawn): void {
    if (this.coloured !== editor) {
      this.clear();
    }
    this.coloured = editor;
    const places = new Map<string, vscode.DecorationOptions[]>();
    for (const [line, kernels] of byLine(drawn, editor.document.uri.toString())) {
      const key = kernels.slice(0, STRIPES).join(",");
      const words = kernels.map((index) => `kernel ${index + 1}: ${drawn.kernels[index]?.what ?? ""}`).join("  \n");
      const options = { range: new vscode.Range(line, 0, line, 0), hoverMessage: words };
      places.set(key, [...(places.get(key) ?? []), options]);
    }
    for (const key of places.keys()) {
      this.kinds.set(key, this.kinds.get(key) ?? kind(key));
    }
    for (const [key, decoration] of this.kinds) {
      editor.setDecorations(decoration, places.get(key) ?? []);
    }
  }

  private clear(): void {
    for (const decoration of this.kinds.values()) {
      this.coloured?.setDecorations(decoration, []);
    }
    this.coloured = undefined;
  }
}

function isOn(uri: vscode.Uri): boolean {
  return vscode.workspace.getConfiguration(SECTION, uri).get<boolean>(SETTING) === true;
}

async function toggle(): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION, vscode.window.activeTextEditor?.document.uri ?? null);
  const on = configuration.get<boolean>(SETTING) === true;
  await configuration.update(SETTING, !on, vscode.ConfigurationTarget.Global);
}

/** The kernels of each line on which something of them is written, in order. */
function byLine(drawn: Drawn, uri: string): Map<number, number[]> {
  const lines = new Map(
    drawn.equations.flatMap(({ path, place }) =>
      place?.uri === uri ? [[path, place.range.start.line] as const] : [],
    ),
  );
  const found = new Map<number, number[]>();
  drawn.kernels.forEach((kernel, index) => {
    for (const line of new Set(kernel.equations.map((path) => lines.get(path)))) {
      if (line !== undefined) {
        found.set(line, [...(found.get(line) ?? []), index]);
      }
    }
  });
  return found;
}

/** A bar beside the line numbers, of as many stripes as there are kernels. */
function kind(key: string): vscode.TextEditorDecorationType {
  const colours = key.split(",").map((index) => COLOURS[Number(index) % COLOURS.length] ?? "gray");
  const width = 12 / colours.length;
  const stripes = colours.map(
    (colour, index) => `<rect x="${4 + index * width}" width="${width - 1}" height="20" fill="${colour}"/>`,
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">${stripes.join("")}</svg>`;
  return vscode.window.createTextEditorDecorationType({
    gutterIconPath: vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`),
    gutterIconSize: "cover",
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
}
