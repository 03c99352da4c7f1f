/**
 * With what the server was started last in this workspace, in a file of the user's cache folder: VS Code's own memory of a workspace cannot
 * be read before activation.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";

import * as vscode from "vscode";

import type { ByFolder } from "./pythons";

/** Workspaces that are remembered, the last used ones. */
const KEPT = 100;

interface Remembered {
  /** The Python that runs the server, and its size and time: another executable there must show its version first. */
  readonly server: string;
  readonly stamp: string;
  readonly interpreters: ByFolder;
}

/** The last start of this workspace, if its Python is still the same executable. */
export function recall(): Remembered | undefined {
  const found = all()[workspace()];
  return typeof found?.server === "string" && found.stamp === stamp(found.server) ? found : undefined;
}

/** Keeps a start for the next window; one by a command that is looked up would have to be looked up again. */
export function remember(server: string, interpreters: ByFolder): void {
  const now = stamp(server);
  if (now === undefined) {
    return;
  }
  const others = Object.entries(all()).filter(([key]) => key !== workspace());
  const kept = Object.fromEntries([...others.slice(1 - KEPT), [workspace(), { server, stamp: now, interpreters }]]);
  try {
    mkdirSync(dirname(file()), { recursive: true, mode: 0o700 });
    const written = `${file()}.${process.pid}`;
    writeFileSync(written, JSON.stringify(kept), { mode: 0o600 });
    renameSync(written, file()); // Windows that start together read a whole file.
  } catch {
    return; // The next window asks again.
  }
}

/** Size and time of an executable. */
function stamp(python: string): string | undefined {
  const found = isAbsolute(python) ? statSync(python, { throwIfNoEntry: false }) : undefined;
  return found && `${found.size} ${found.mtimeMs}`;
}

function all(): Partial<Record<string, Remembered>> {
  try {
    const read: unknown = JSON.parse(readFileSync(file(), "utf8"));
    return typeof read === "object" && read !== null ? read : {};
  } catch {
    return {}; // There is none yet, or it is none of ours.
  }
}

function workspace(): string {
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.toString());
  return createHash("sha256").update(folders.join("\n")).digest("hex");
}

function file(): string {
  return join(caches(), "jaxsight", "vscode-starts.json");
}

function caches(): string {
  const { XDG_CACHE_HOME: xdg = "", LOCALAPPDATA: local = "" } = process.env;
  if (process.platform === "win32" && local !== "") {
    return local;
  }
  return xdg !== "" ? xdg : join(homedir(), process.platform === "darwin" ? "Library/Caches" : ".cache");
}
