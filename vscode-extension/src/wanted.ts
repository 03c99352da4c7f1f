/** When there is something for a server to do: in a workspace whose files used JAX before, with the window; in others, with the first file. */

import * as vscode from "vscode";

import { MADE, PROGRAMS } from "./made";

/** The key of the workspace's memory that says whether a file of it was seen to use JAX. */
const USES_JAX = "usesJax";

/** Resolved once a server is wanted, maybe at once. */
export async function whenWanted(context: vscode.ExtensionContext): Promise<void> {
  if (context.workspaceState.get<boolean>(USES_JAX) === true || vscode.workspace.textDocuments.some(isOurs)) {
    return;
  }
  await new Promise<void>((resolve) => {
    const listening = vscode.workspace.onDidOpenTextDocument((document) => {
      if (isOurs(document)) {
        listening.dispose();
        resolve();
      }
    });
    context.subscriptions.push(listening);
  });
}

/** Has the server start with the window from now on. */
export async function rememberUse(context: vscode.ExtensionContext): Promise<void> {
  if (context.workspaceState.get<boolean>(USES_JAX) !== true) {
    await context.workspaceState.update(USES_JAX, true);
  }
}

function isOurs(document: vscode.TextDocument): boolean {
  return ["python", ...PROGRAMS].includes(document.languageId) || document.uri.scheme.startsWith(MADE);
}
