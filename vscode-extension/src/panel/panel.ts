/**
 * The panel in VS Code: one webview that follows the cursor. What it looks like is the business of the package `panel/`; here is what it
 * is shown, and when.
 */

import * as vscode from "vscode";

import { oneLine } from "../../panel/src/inert";
import type { Content, Following, FromPanel, Kept, Kind, Position, Shown, Swept, ToPanel } from "../../panel/src/messages";
import type { Logs } from "../logs";
import type { Server } from "../server";
import { built, page } from "./page";
import { isSource, same, Source } from "./source";

const TYPE = "jaxsight.panel";
/** Milliseconds that the cursor rests before another function is asked for. */
const REST = 150;

type Asked = { readonly uri: string } & ({ readonly function: string } | { readonly position: Position });

export class Panel implements vscode.Disposable, vscode.WebviewPanelSerializer<Kept> {
  private readonly source = new Source();
  private readonly subscriptions: { dispose(): unknown }[];
  private view: vscode.WebviewPanel | undefined;
  private following: Following = { pinned: false, paused: false };
  private shown: Shown | undefined;
  /** The function of before a reload, until it is shown again. */
  private kept: Kept | undefined;
  private asking: vscode.CancellationTokenSource | undefined;
  private sweeping: vscode.CancellationTokenSource | undefined;
  private resting: NodeJS.Timeout | undefined;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
    private readonly logs: Logs,
  ) {
    this.subscriptions = [
      this.source,
      vscode.commands.registerCommand("jaxsight.showPanel", () => {
        this.open();
      }),
      vscode.window.registerWebviewPanelSerializer(TYPE, this),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        this.moved(textEditor);
      }),
      vscode.window.onDidChangeActiveTextEditor((editor) => {
        if (editor !== undefined) {
          this.moved(editor);
        }
      }),
      server.onDidStart(() => {
        this.again();
      }),
      server.onDidRefreshPanel((uri) => {
        // The cells of a notebook have its path.
        if (this.shown === undefined || vscode.Uri.parse(this.shown.uri).path === uri.path) {
          this.again();
        }
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.resting);
    this.asking?.cancel();
    this.sweeping?.cancel();
    this.view?.dispose();
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** VS Code has a panel from before a reload. */
  deserializeWebviewPanel(view: vscode.WebviewPanel, kept: Kept | undefined): Thenable<void> {
    this.kept = kept;
    this.following = { pinned: kept?.pinned ?? false, paused: kept?.paused ?? false };
    this.adopt(view);
    return Promise.resolve();
  }

  private open(): void {
    if (this.view !== undefined) {
      this.view.reveal(undefined, true);
      return;
    }
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    this.adopt(vscode.window.createWebviewPanel(TYPE, "jaxsight", column));
  }

  private adopt(view: vscode.WebviewPanel): void {
    this.view?.dispose();
    this.view = view;
    view.iconPath = vscode.Uri.joinPath(this.extension, "media", "icon.svg");
    view.webview.options = { enableScripts: true, localResourceRoots: [built(this.extension)] };
    view.webview.onDidReceiveMessage((message: FromPanel) => {
      this.hear(message).catch((error: unknown) => {
        this.logs.client.error(error instanceof Error ? error : String(error));
      });
    });
    view.onDidDispose(() => {
      if (this.view === view) {
        this.view = undefined;
        this.shown = undefined;
        this.asking?.cancel();
        this.sweeping?.cancel();
        this.source.clear();
      }
    });
    view.webview.html = page(view.webview, this.extension);
  }

  private async hear(message: FromPanel): Promise<void> {
    switch (message.type) {
      case "ready":
        this.tell({ type: "following", following: this.following });
        this.tell({ type: "show", shown: this.shown ?? null });
        this.again();
        break;
      case "reveal":
        await this.source.show(message.places, message.focus);
        break;
      case "content":
        await this.content(message.kind);
        break;
      case "sweep":
        await this.sweep(message.sizes, message.figure);
        break;
      case "chooseSet":
        if (this.shown !== undefined) {
          const { uri, function: name } = this.shown;
          await vscode.commands.executeCommand("jaxsight.chooseSet", uri, name, message.set);
          this.again();
        }
        break;
      case "chooseTarget":
        await vscode.commands.executeCommand("jaxsight.chooseTarget", message.target);
        this.again();
        break;
      case "measure":
        await this.measure();
        break;
      case "follow":
        this.following = message.following;
        this.again();
        break;
      case "copy":
        await vscode.env.clipboard.writeText(message.text);
        vscode.window.setStatusBarMessage(`jaxsight: copied ${message.what}`, 3000);
        break;
      case "save":
        await save(message.name, message.svg);
        break;
    }
  }

  private tell(message: ToPanel): void {
    void this.view?.webview.postMessage(message);
  }

  private moved(editor: vscode.TextEditor): void {
    if (this.view === undefined || !hasFunctions(editor)) {
      return;
    }
    this.tellCursor(editor);
    const { range, uri } = this.shown ?? {};
    const cursor = editor.selection.active;
    const inside =
      range !== undefined &&
      range !== null &&
      same(uri ?? "", editor.document.uri.toString()) &&
      range.start.line <= cursor.line &&
      cursor.line <= range.end.line;
    if (!inside && !this.following.pinned && !this.following.paused) {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => {
        this.ask([at(editor)]);
      }, REST);
    }
  }

  private tellCursor(editor: vscode.TextEditor): void {
    const { line, character } = editor.selection.active;
    this.tell({ type: "cursor", uri: editor.document.uri.toString(), position: { line, character } });
  }

  /** There may be more to tell of what is shown. */
  private again(): void {
    const { paused, pinned } = this.following;
    const known = this.shown ?? this.kept;
    if (this.view === undefined || (paused && this.shown !== undefined)) {
      return;
    }
    const asked: Asked[] = known === undefined ? [] : [{ uri: known.uri, function: known.function }];
    const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors.find(hasFunctions);
    if (editor !== undefined && hasFunctions(editor)) {
      this.tellCursor(editor);
      // A function around the cursor goes first; where there is none, the one that is shown stays.
      if (pinned && known !== undefined) {
        asked.push(at(editor));
      } else {
        asked.unshift(at(editor));
      }
    }
    this.ask(asked);
  }

  /** Asks the server, the next where the one before has no answer; what was asked before is given up. */
  private ask(asked: readonly Asked[]): void {
    this.asking?.cancel();
    const asking = (this.asking = new vscode.CancellationTokenSource());
    this.tell({ type: "busy", busy: true });
    this.answer(asked, asking.token)
      .catch((error: unknown) => {
        if (!asking.token.isCancellationRequested) {
          this.logs.client.error(error instanceof Error ? error : String(error));
        }
      })
      .finally(() => {
        if (this.asking === asking) {
          this.tell({ type: "busy", busy: false });
        }
        asking.dispose();
      });
  }

  private async answer(asked: readonly Asked[], token: vscode.CancellationToken): Promise<void> {
    for (const each of asked) {
      const shown = await this.server.request<Shown | null>("jaxsight/panel", each, token);
      if (token.isCancellationRequested) {
        return;
      }
      if (shown !== undefined && shown !== null) {
        this.show(shown);
        return;
      }
    }
  }

  private show(shown: Shown): void {
    if (this.shown?.function !== shown.function || this.shown.uri !== shown.uri) {
      this.source.clear();
      this.sweeping?.cancel();
    }
    this.shown = shown;
    this.kept = undefined;
    if (this.view !== undefined) {
      this.view.title = oneLine(shown.function);
    }
    this.tell({ type: "show", shown });
  }

  /** Has what is shown measured; the server asks before, shows its progress, and says when there are figures. */
  private async measure(): Promise<void> {
    if (this.shown === undefined) {
      return;
    }
    const { uri, function: name } = this.shown;
    this.tell({ type: "measuring", measuring: true });
    try {
      await vscode.commands.executeCommand("jaxsight.measure", uri, name);
    } finally {
      this.tell({ type: "measuring", measuring: false });
    }
  }

  /** Asks for a sweep of the function that is shown; one before, or of another function, is given up. */
  private async sweep(sizes: string, figure: string): Promise<void> {
    this.sweeping?.cancel();
    if (this.shown === undefined) {
      return;
    }
    const { uri, function: name } = this.shown;
    const sweeping = (this.sweeping = new vscode.CancellationTokenSource());
    const params = { uri, function: name, sizes, figure };
    const swept = await this.server.request<Swept | null>("jaxsight/sweep", params, sweeping.token);
    if (!sweeping.token.isCancellationRequested) {
      this.tell({ type: "swept", swept: swept ?? null });
    }
    sweeping.dispose();
  }

  private async content(kind: Kind): Promise<void> {
    const uri = this.shown?.documents[kind];
    const asked = this.shown;
    const tell = (content: Content | undefined): void => {
      if (content !== undefined && this.shown === asked) {
        this.tell({ type: "content", kind, content });
      }
    };
    try {
      tell(await this.server.request<Content>("jaxsight/textDocumentContent", { uri }));
    } catch (error) {
      // The tab would wait for it.
      const words = oneLine(error instanceof Error ? error.message : String(error));
      tell({ text: `# cannot be shown: ${words}\n`, stale: false, links: [] });
      throw error;
    }
  }
}

function hasFunctions({ document }: vscode.TextEditor): boolean {
  return document.languageId === "python" && isSource(document.uri.toString());
}

function at(editor: vscode.TextEditor): Asked {
  const { line, character } = editor.selection.active;
  return { uri: editor.document.uri.toString(), position: { line, character } };
}

async function save(name: string, svg: string): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const file = await vscode.window.showSaveDialog({
    filters: { SVG: ["svg"] },
    ...(folder === undefined ? {} : { defaultUri: vscode.Uri.joinPath(folder, name.replace(/[^\p{L}\p{N}_.-]/gu, "_")) }),
  });
  if (file !== undefined) {
    await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(svg));
  }
}
