/**
 * Records runs of the user's programs: what functions are called with becomes their example inputs.
 *
 * A run is a task, in a terminal, with the server that the extension brings along; the server notices the file that it writes.
 */

import * as vscode from "vscode";

import type { Pythons } from "./pythons";

const TYPE = "jaxsight";
const LAST = "jaxsight.recordedCommand";

export class Recordings implements vscode.Disposable, vscode.TaskProvider {
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly pythons: Pythons,
  ) {
    this.subscriptions = [
      vscode.tasks.registerTaskProvider(TYPE, this),
      vscode.commands.registerCommand("jaxsight.record", (command?: unknown) =>
        this.record(typeof command === "string" ? command : undefined),
      ),
    ];
  }

  /** The file in the editor, and the tests. */
  async provideTasks(): Promise<vscode.Task[]> {
    const folder = currentFolder();
    if (folder === undefined) {
      return [];
    }
    const commands = [...programs(folder), "pytest"];
    return Promise.all(commands.map((command) => this.task(command, folder)));
  }

  /** A task of the user's `tasks.json`. */
  async resolveTask(task: vscode.Task): Promise<vscode.Task | undefined> {
    const command: unknown = task.definition["command"];
    const scope = task.scope;
    const folder = typeof scope === "object" ? scope : currentFolder();
    if (typeof command !== "string" || folder === undefined) {
      return undefined;
    }
    return this.task(command, folder, task.definition);
  }

  dispose(): void {
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
  }

  /** Asks for a program, and runs it. */
  private async record(given?: string): Promise<void> {
    const folder = currentFolder();
    if (folder === undefined) {
      return;
    }
    const last = this.context.workspaceState.get<string>(LAST);
    const command =
      given ??
      (await vscode.window.showInputBox({
        title: "Record a run",
        prompt: "Program to run. What its functions are called with becomes their example inputs; no values of arrays are stored.",
        value: last ?? programs(folder)[0] ?? "pytest",
      }));
    if (command === undefined || command.trim() === "") {
      return;
    }
    await this.context.workspaceState.update(LAST, command);
    await vscode.tasks.executeTask(await this.task(command, folder));
  }

  private async task(
    command: string,
    folder: vscode.WorkspaceFolder,
    definition: vscode.TaskDefinition = { type: TYPE, command },
  ): Promise<vscode.Task> {
    const python = (await this.pythons.byFolder())[folder.uri.toString()];
    const start = ["-I", "-S", "-X", "utf8", this.context.asAbsolutePath("bundled/start.py"), "record"];
    const chosen = python === undefined ? [] : ["--python", python];
    const execution = new vscode.ProcessExecution(
      await this.pythons.forServer(),
      [...start, ...chosen, "--root", folder.uri.fsPath, "--line", "--", command],
      { cwd: folder.uri.fsPath },
    );
    return new vscode.Task(definition, folder, `record ${command}`, TYPE, execution);
  }
}

/** The commands that run the Python file in the editor. */
function programs(folder: vscode.WorkspaceFolder): string[] {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== "python" || document.uri.scheme !== "file") {
    return [];
  }
  const path = vscode.workspace.asRelativePath(document.uri, false);
  const isInside = vscode.workspace.getWorkspaceFolder(document.uri) === folder;
  return isInside ? [`python ${quoted(path)}`] : [];
}

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function currentFolder(): vscode.WorkspaceFolder | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  const own = uri === undefined ? undefined : vscode.workspace.getWorkspaceFolder(uri);
  return own ?? vscode.workspace.workspaceFolders?.[0];
}
