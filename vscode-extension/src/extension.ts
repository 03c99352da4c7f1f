/** The extension's beginning and end: puts the parts together. Nothing here waits, so that activation costs the editor nothing. */

import * as vscode from "vscode";

import { registerCommands } from "./commands";
import { Examples } from "./examples";
import { launchEarly } from "./launch";
import { Links } from "./links";
import { Logs } from "./logs";
import { Membership } from "./membership";
import { Messages } from "./messages";
import { Panel } from "./panel/panel";
import { Profiles } from "./profiles";
import { Pythons } from "./pythons";
import { Recordings } from "./recordings";
import { Server } from "./server";
import { Status } from "./status";
import { Targets } from "./targets";
import { whenWanted } from "./wanted";

/** What other extensions and the tests get. */
export interface Api {
  /** Resolved once the server has answered `initialize`, or cannot. */
  readonly ready: Promise<void>;
}

/** Started while VS Code reads this module; see `launch.ts`. */
const early = launchEarly();

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const logs = new Logs();
  const status = new Status();
  const messages = new Messages();
  const pythons = new Pythons(logs);
  server = new Server(context, logs, status, messages, pythons, early);
  const targets = new Targets(server);
  const examples = new Examples(server);
  const links = new Links(server);
  const membership = new Membership(server);
  const panel = new Panel(context.extensionUri, server, logs);
  const recordings = new Recordings(context, pythons);
  const profiles = new Profiles(server);
  const commands = registerCommands(context, server, logs, pythons);
  const parts = [logs, status, messages, pythons, targets, examples, links, membership, panel, profiles, recordings];
  context.subscriptions.push(...parts, ...commands);
  const ready = whenWanted(context).then(() => server?.whenStarted());
  return { ready };
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}
