/**
 * When there is something for a server to do: with the window in a workspace that has Python at the top of a folder, or whose files used
 * JAX before; with the first file in others.
 */

import * as vscode from "vscode";

import { MADE, PROGRAM_FILE, PROGRAMS } from "./made";

/** The key of the workspace's memory that says whether a file of it was seen to use JAX. */
const USES_JAX = "usesJax";

/** What a folder of a Python project has at its top. */
const PYTHON = /\.(py|ipynb)$|^(pyproject\.toml|setup\.cfg|requirements.*\.txt|environment\.ya?ml|\.venv|venv)$/;

/** Whether a file is open that the server has answers about. */
export function isWanted(): boolean {
  return vscode.workspace.textDocuments.some(isOurs);
}

/** Resolved once a server is wanted, maybe at once. */
export async function whenWanted(context: vscode.ExtensionContext): Promise<void> {
  if (context.workspaceState.get<boolean>(USES_JAX) === true || isWanted()) {
    return;
  }
  const opened = new Promise<void>((resolve) => {
    const listening = vscode.workspace.onDidOpenTextDocument((document) => {
      if (isOurs(document)) {
        listening.dispose();
        resolve();
      }
    });
    context.subscriptions.push(listening);
  });
  const folders = vscode.workspace.workspaceFolders ?? [];
  const listed = Promise.all(folders.map(({ uri }) => hasPython(uri)));
  const atTheTop = listed.then((has) => (has.includes(true) ? undefined : opened));
  await Promise.race([opened, atTheTop]);
}

async function hasPython(folder: vscode.Uri): Promise<boolean> {
  try {
    return (await vscode.workspace.fs.readDirectory(folder)).some(([name]) => PYTHON.test(name));
  } catch {
    return false; // It is gone, or its file system is not there yet.
  }
}

/** Has the server start with the window from now on. */
export async function rememberUse(context: vscode.ExtensionContext): Promise<void> {
  if (context.workspaceState.get<boolean>(USES_JAX) !== true) {
    await context.workspaceState.update(USES_JAX, true);
  }
}

function isOurs(document: vscode.TextDocument): boolean {
  const { languageId, uri } = document;
  return ["python", ...PROGRAMS].includes(languageId) || uri.scheme.startsWith(MADE) || PROGRAM_FILE.test(uri.path);
}
