/** What the server says to people: in a toast as much as one shows, and all of it in a document. */

import * as vscode from "vscode";

import { firstClause } from "./words";

/** `window/showMessage`. */
export interface Said {
  readonly type: number;
  readonly message: string;
}

const SCHEME = "jaxsight.message";
/** Characters of a toast; VS Code cuts longer ones, and has no way to the rest. */
const TOAST = 100;
const ERROR = 1;
const WARNING = 2;
const SHOW = "Show Details";
/** What the server says where it has written all of a reason into its log. */
const IN_LOG = "in the log)";
const LOG = "Show Log";

export class Messages implements vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly subscriptions = [
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      provideTextDocumentContent: (uri) => this.texts.get(uri.path),
    }),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => {
      if (uri.scheme === SCHEME) {
        this.texts.delete(uri.path);
      }
    }),
  ];
  private count = 0;

  async show({ type, message }: Said): Promise<void> {
    const show =
      type === ERROR ? vscode.window.showErrorMessage : type === WARNING ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
    const more = message.endsWith(IN_LOG) ? [LOG] : message.length > TOAST ? [SHOW] : [];
    const short = more.includes(SHOW) ? firstClause(message, TOAST) : message;
    const answer = await show(short, ...more);
    if (answer === SHOW) {
      await this.open(short, message);
    } else if (answer === LOG) {
      await vscode.commands.executeCommand("jaxsight.showLogs");
    }
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Nothing that asks to be saved when it is closed. */
  private async open(short: string, details: string): Promise<void> {
    const path = `/${++this.count}/${short.replaceAll("/", "∕")}`;
    this.texts.set(path, details);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.from({ scheme: SCHEME, path }));
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
  }
}
