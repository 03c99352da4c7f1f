/** The panel in VS Code: one webview. What it looks like, and what it is shown when, is the business of the package `panel/`. */

import * as vscode from "vscode";

import { type Cursor, Follower } from "../../panel/src/following";
import { oneLine } from "../../panel/src/inert";
import type { FromPanel, Kept, ToPanel } from "../../panel/src/messages";
import type { Logs } from "../logs";
import type { Server } from "../server";
import { built, page } from "./page";
import { isSource, same, Source } from "./source";

const TYPE = "jaxsight.panel";
export class Panel implements vscode.Disposable, vscode.WebviewPanelSerializer<Kept> {
  private readonly source = new Source();
  private readonly subscriptions: { dispose(): unknown }[];
  private view: vscode.WebviewPanel | undefined;
  private readonly follower: Follower;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
    private readonly logs: Logs,
  ) {
    this.follower = new Follower(
      {
        cursor: () => {
          const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors.find(hasFunctions);
          return editor !== undefined && hasFunctions(editor) ? at(editor) : undefined;
        },
        request: (method, params, signal) => this.request(method, params, signal),
        execute: async (command, ...texts) => vscode.commands.executeCommand(command, ...texts),
        same,
        left: () => {
          this.source.clear();
        },
        failed: (error) => {
          this.failed(error);
        },
      },
      (message) => {
        this.tell(message);
      },
    );
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
        if (this.view !== undefined) {
          this.follower.again();
        }
      }),
      server.onDidRefreshPanel((uri) => {
        if (this.view !== undefined) {
          // The cells of a notebook have its path.
          this.follower.refreshed((shown) => vscode.Uri.parse(shown).path === uri.path);
        }
      }),
    ];
  }

  dispose(): void {
    this.follower.rest();
    this.view?.dispose();
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** VS Code has a panel from before a reload. */
  deserializeWebviewPanel(view: vscode.WebviewPanel, kept: Kept | undefined): Thenable<void> {
    if (kept !== undefined) {
      this.follower.restore(kept);
    }
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
        this.failed(error);
      });
    });
    view.onDidDispose(() => {
      if (this.view === view) {
        this.view = undefined;
        this.follower.rest();
        this.source.clear();
      }
    });
    view.webview.html = page(view.webview, this.extension);
  }

  private async hear(message: FromPanel): Promise<void> {
    switch (message.type) {
      case "reveal":
        await this.source.show(message.places, message.focus);
        break;
      case "copy":
        await vscode.env.clipboard.writeText(message.text);
        vscode.window.setStatusBarMessage(`jaxsight: copied ${message.what}`, 3000);
        break;
      case "save":
        await save(message.name, message.svg);
        break;
      default:
        await this.follower.hear(message);
    }
  }

  private tell(message: ToPanel): void {
    if (message.type === "show" && message.shown !== null && this.view !== undefined) {
      this.view.title = oneLine(message.shown.function);
    }
    void this.view?.webview.postMessage(message);
  }

  private moved(editor: vscode.TextEditor): void {
    if (this.view === undefined || !hasFunctions(editor)) {
      return;
    }
    this.follower.moved(() => at(editor));
  }

  private async request<Answer>(method: string, params: object, signal?: AbortSignal): Promise<Answer | null | undefined> {
    const cancelling = new vscode.CancellationTokenSource();
    signal?.addEventListener("abort", () => {
      cancelling.cancel();
    });
    try {
      return await this.server.request<Answer | null>(method, params, cancelling.token);
    } finally {
      cancelling.dispose();
    }
  }

  private failed(error: unknown): void {
    this.logs.client.error(error instanceof Error ? error : String(error));
  }
}

function hasFunctions({ document }: vscode.TextEditor): boolean {
  return document.languageId === "python" && isSource(document.uri.toString());
}

function at(editor: vscode.TextEditor): Cursor {
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
