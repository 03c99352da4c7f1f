/**
 * The server's process. It is started before the library that speaks with it is loaded, and, in a workspace that was open before, before
 * VS Code activates the extension: that waits until the window, which is busy with its own start, has read what it remembers.
 */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { join } from "node:path";

import * as vscode from "vscode";

import { recall } from "./memory";
import type { ByFolder } from "./pythons";
import { explicitSettings, settingKeys } from "./settings";
import { isWanted } from "./wanted";

/** A process, and what it was told at its start. */
export interface Launch {
  readonly process: ChildProcessWithoutNullStreams;
  readonly python: string;
  readonly interpreters: ByFolder;
}

/** Isolated: neither the environment's variables nor its packages reach the server. */
const ISOLATED = ["-I", "-S", "-X", "utf8"];
/** Whether the workspace's code runs, VS Code's own trust decides: `trusted` in the options, and a notification when it is granted. */
const SERVE = ["server", "--trust", "editor"];

/**
 * Starts a server, and announces what `initialize` will say: it starts the tracers and imports its own modules meanwhile.
 *
 * @throws Error in words for people when the process cannot be started.
 */
export function launch(python: string, interpreters: ByFolder): Launch {
  const extension = join(__dirname, "..");
  // A command without a folder is looked up in the working folder, too (always on Windows), which would be the workspace.
  const server = spawn(python, [...ISOLATED, join(extension, "bundled", "start.py"), ...SERVE], { cwd: extension, windowsHide: true });
  const ignore = (): void => undefined;
  // Who reads the streams learns of it, too; without a listener, Node would end this process.
  server.on("error", ignore);
  server.stdin.on("error", ignore);
  if (server.pid === undefined) {
    throw new Error(`The language server cannot be started with ${python}`);
  }
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri, name }) => ({ uri: uri.toString(), name }));
  const params = { processId: process.pid, workspaceFolders: folders, initializationOptions: initializationOptions(interpreters) };
  const body = JSON.stringify({ jsonrpc: "2.0", method: "jaxsight/announce", params });
  server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  return { process: server, python, interpreters };
}

/** Before activation: starts a server if a file is open that it has answers about, and nobody has to be asked how. */
export function launchEarly(): Launch | undefined {
  return isWanted() ? launchAsLast() : undefined;
}

/** Starts a server with what the last one in this workspace was started with; the Python extension, seconds later, confirms that or not. */
export function launchAsLast(): Launch | undefined {
  const isSet = vscode.workspace.getConfiguration("jaxsight").get<string>("serverPython", "") !== "";
  const last = isSet || !vscode.workspace.isTrusted ? undefined : recall();
  try {
    return last && launch(last.server, last.interpreters);
  } catch {
    return undefined; // Another interpreter is looked for, or there are words why there is none.
  }
}

export function initializationOptions(interpreters: ByFolder): Record<string, unknown> {
  return { ...explicitSettings(undefined, settingKeys()), trusted: vscode.workspace.isTrusted, interpreters };
}
