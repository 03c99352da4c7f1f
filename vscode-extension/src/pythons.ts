/**
 * Which Python the editor has chosen for each folder, and which one runs the server.
 *
 * The first is the Python extension's to say, where it is installed; it changes when people choose another one. The server
 * runs in any Python of version 3.11 or later. In a workspace that is not trusted that one must not come from the workspace.
 */

import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";

import type { Logs } from "./logs";
import { recall, remember } from "./memory";

const run = promisify(execFile);

const PYTHON_EXTENSION = "ms-python.python";
const COMMANDS =
  process.platform === "win32"
    ? ["py", "python", "python3"]
    : ["python3", "python3.13", "python3.12", "python3.11", "python"];
const OLDEST = [3, 11] as const;

/** Interpreters by folder URI. */
export type ByFolder = Record<string, string>;

export class Pythons implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscriptions: { dispose(): unknown }[] = [this.changed];
  private api: PythonExtension | undefined;
  private opening: Promise<void> | undefined;

  /** Another interpreter was chosen somewhere, or the Python extension has come up. */
  readonly onDidChange = this.changed.event;

  constructor(private readonly logs: Logs) {}

  /** What the server starts with. The Python extension, which may take seconds, is waited for. */
  async atStart(): Promise<{ readonly server: string; readonly interpreters: ByFolder }> {
    return { server: await this.forServer(), interpreters: await this.byFolder() };
  }

  /** Lets the next window of this workspace start the server before anybody can be asked. */
  async remember(): Promise<void> {
    const interpreters = await this.byFolder();
    if (vscode.workspace.isTrusted && JSON.stringify(recall()?.interpreters) !== JSON.stringify(interpreters)) {
      remember(await this.forServer(), interpreters);
    }
  }

  /** The editor's choice for each folder; nothing for folders for which there is none. */
  async byFolder(): Promise<ByFolder> {
    await (this.opening ??= this.open());
    const found: ByFolder = {};
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      const python = await this.of(folder.uri);
      if (python !== undefined) {
        found[folder.uri.toString()] = python;
      }
    }
    return found;
  }

  /** Lets people choose, by the Python extension's own command where it is there. */
  async choose(): Promise<void> {
    await (this.opening ??= this.open());
    if (this.api !== undefined) {
      await vscode.commands.executeCommand("python.setInterpreter");
    } else {
      await vscode.commands.executeCommand("workbench.action.openSettings", "jaxsight.python");
    }
  }

  /**
   * A Python to run the server with.
   *
   * @throws Error in words for people when there is none.
   */
  async forServer(): Promise<string> {
    const setting = vscode.workspace.getConfiguration("jaxsight").get<string>("serverPython", "");
    if (setting !== "") {
      if (await isNewEnough(setting)) {
        return setting;
      }
      throw new Error(`invalid setting jaxsight.serverPython: ${setting} is not Python 3.11 or newer`);
    }
    const own = vscode.workspace.isTrusted ? Object.values(await this.byFolder()) : [];
    for (const candidate of [...own, ...COMMANDS]) {
      if (await isNewEnough(candidate)) {
        return candidate;
      }
    }
    throw new Error(
      "No Python 3.11 or newer found to run the language server: choose an interpreter, or set jaxsight.serverPython.",
    );
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async open(): Promise<void> {
    if (vscode.extensions.getExtension(PYTHON_EXTENSION) === undefined) {
      return;
    }
    try {
      this.api = await PythonExtension.api();
      await this.api.ready;
    } catch (error) {
      this.logs.client.warn(`The Python extension did not respond: ${String(error)}`);
      this.api = undefined;
      return;
    }
    this.subscriptions.push(
      this.api.environments.onDidChangeActiveEnvironmentPath(() => {
        this.changed.fire();
      }),
    );
  }

  private async of(folder: vscode.Uri): Promise<string | undefined> {
    if (this.api === undefined) {
      return undefined;
    }
    const active = this.api.environments.getActiveEnvironmentPath(folder);
    const environment = await this.api.environments.resolveEnvironment(active);
    return environment?.executable.uri?.fsPath;
  }
}

/** Runs a Python to ask for its version. */
async function isNewEnough(python: string): Promise<boolean> {
  try {
    const { stdout } = await run(
      python,
      ["-I", "-S", "-c", "import sys; print(*sys.version_info[:2])"],
      { timeout: 10_000, windowsHide: true },
    );
    const [major = 0, minor = 0] = stdout.trim().split(" ").map(Number);
    return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
  } catch {
    return false; // It is not there, or no Python.
  }
}
