/** Profiles of real runs: *Open Profile…* asks for one, and the lines that its report names are links. */

import * as vscode from "vscode";

import { MADE } from "./made";
import type { Server } from "./server";

const PATTERN = "**/*.xplane.pb";
/** More would take long to list, and nobody reads them. */
const MOST = 100;
const PLACE = /(\S+\.py):(\d+)/gu;

interface Listed extends vscode.QuickPickItem {
  /** None to choose another file. */
  readonly uri: vscode.Uri | undefined;
}

export class Profiles implements vscode.Disposable, vscode.DocumentLinkProvider {
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.subscriptions = [
      vscode.commands.registerCommand("jaxsight.pickProfile", () => this.pick()),
      vscode.languages.registerDocumentLinkProvider({ scheme: `${MADE}profile` }, this),
    ];
  }

  /** The lines of files that a report names. */
  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    return [...document.getText().matchAll(PLACE)].flatMap((match) => {
      const [text, path = "", line = "1"] = match;
      const isAbsolute = /^([/\\]|[A-Za-z]:)/u.test(path);
      if (!isAbsolute && folder === undefined) {
        return [];
      }
      const file = isAbsolute || folder === undefined ? vscode.Uri.file(path) : vscode.Uri.joinPath(folder, path);
      const range = new vscode.Range(
        document.positionAt(match.index),
        document.positionAt(match.index + text.length),
      );
      return [new vscode.DocumentLink(range, file.with({ fragment: `L${line}` }))];
    });
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Asks for a profile of the workspace, or another one, and opens it. */
  private async pick(): Promise<void> {
    const found = await vscode.workspace.findFiles(PATTERN, undefined, MOST);
    // Runs are named after the time at which they began.
    const newest = found.sort((one, other) => (runOf(one) < runOf(other) ? 1 : -1));
    const listed: Listed[] = [
      ...newest.map((uri) => ({ label: runOf(uri), description: vscode.workspace.asRelativePath(uri), uri })),
      { label: "Choose a file…", uri: undefined },
    ];
    const chosen =
      found.length === 0 ? listed[0] : await vscode.window.showQuickPick(listed, { title: "Open a profile" });
    if (chosen === undefined) {
      return;
    }
    const uri = chosen.uri ?? (await choose());
    if (uri !== undefined) {
      await this.server.whenStarted();
      await vscode.commands.executeCommand("jaxsight.openProfile", uri.toString());
    }
  }
}

async function choose(): Promise<vscode.Uri | undefined> {
  const chosen = await vscode.window.showOpenDialog({ title: "Open a profile", filters: { Profiles: ["pb"] } });
  return chosen?.[0];
}

/** The name of the run that a file belongs to: that of its folder. */
function runOf(uri: vscode.Uri): string {
  return uri.path.split("/").at(-2) ?? uri.path;
}
