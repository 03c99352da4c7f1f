/**
 * The connection to a server's process, by VS Code's library for language clients. That library takes longer to load than all the rest, so
 * this is a bundle of its own, which is read once the extension is active and a Python has been found.
 */

import type { ChildProcess } from "node:child_process";

import * as vscode from "vscode";
import {
  CloseAction,
  type CloseHandlerResult,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  State,
} from "vscode-languageclient/node";

import { initializationOptions, launch, type Launch } from "./launch";
import { MADE, PROGRAMS } from "./made";
import type { Said } from "./messages";
import { ProgressBars } from "./progress";
import { explicitSettings, SECTION, settingKeys } from "./settings";
import type { FileStatus, RootStatus } from "./status";

/** Milliseconds that the first request for hints takes at most. */
const START_PATIENCE = 40;

/** Milliseconds until a server that was told to exit is killed. */
const LAST_WORK = 2_000;

/** Our commands that list what a command of the server takes. */
const LISTS: Readonly<Record<string, string>> = {
  "jaxsight.chooseTarget": "jaxsight.pickTarget",
  "jaxsight.installTarget": "jaxsight.installCompiler",
};

/** Who is told what the server says unasked. */
export interface Listener {
  status(status: RootStatus): void;
  fileStatus(status: FileStatus): void;
  said(said: Said): void;
  printed(uri: string, text: string): void;
  contentChanged(uri: vscode.Uri): void;
  panelChanged(uri: vscode.Uri): void;
  starting(): void;
  running(): void;
  /** The process ended by itself; why there is to be no other one, if there is not. */
  died(): string | undefined;
}

/** A client that has not been started, for a server's process that has. */
export function connection(launched: Launch, log: vscode.LogOutputChannel, listener: Listener): LanguageClient {
  let { process } = launched;
  let isUsed = false;
  const server = async (): Promise<ChildProcess> => {
    // When a process has ended by itself, the library asks for another one.
    if (isUsed) {
      ({ process } = launch(launched.python, launched.interpreters));
    }
    isUsed = true;
    return Promise.resolve(process);
  };
  const client: LanguageClient = new LanguageClient(SECTION, "jaxsight", server, options(launched, log, listener, () => client));
  client.registerFeature({
    fillClientCapabilities: (capabilities) => {
      capabilities.experimental = { ...(capabilities.experimental as object), jaxsight: true };
    },
    initialize: () => undefined,
    getState: () => ({ kind: "static" }),
    clear: () => undefined,
  });
  client.onNotification("jaxsight/status", (status: RootStatus) => {
    listener.status(status);
  });
  client.onNotification("jaxsight/fileStatus", (status: FileStatus) => {
    listener.fileStatus(status);
  });
  // In the place of the library's own, which has long ones cut.
  client.onNotification("window/showMessage", (said: Said) => {
    listener.said(said);
  });
  client.onNotification("jaxsight/output", (output: { uri: string; text: string }) => {
    listener.printed(output.uri, output.text);
  });
  client.onNotification("jaxsight/textDocumentContentRefresh", (made: { uri: string }) => {
    listener.contentChanged(vscode.Uri.parse(made.uri));
  });
  client.onNotification("jaxsight/panelRefresh", (panel: { uri: string }) => {
    listener.panelChanged(vscode.Uri.parse(panel.uri));
  });
  client.onDidChangeState(({ newState }) => {
    if (newState === State.Starting) {
      listener.starting();
    } else if (newState === State.Running) {
      listener.running();
    } else {
      const ended = process;
      setTimeout(() => ended.kill(), LAST_WORK).unref();
    }
  });
  return client;
}

function options(
  { interpreters }: Launch,
  log: vscode.LogOutputChannel,
  listener: Listener,
  client: () => LanguageClient,
): LanguageClientOptions {
  const keys = settingKeys();
  const bars = new ProgressBars(client);
  let starting = true;
  return {
    documentSelector: [
      { language: "python", scheme: "file" },
      { language: "python", scheme: "untitled" },
      { language: "python", notebook: "*" },
      ...PROGRAMS.flatMap((language) => [{ scheme: MADE + language }, { language, scheme: "file" }]),
      { scheme: `${MADE}hlo-metadata` },
      // A lens shows them as source; the language of `.mlir` is another extension's.
      { scheme: "file", pattern: "**/*.{mlir,hlo}" },
    ],
    // Hovers link to documents of their function; no other command runs from Markdown.
    markdown: { isTrusted: { enabledCommands: ["jaxsight.show"] } },
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: initializationOptions(interpreters),
    middleware: {
      // Without an argument, the server would ask with a message: there are lists for that.
      executeCommand: (command, given, next): vscode.ProviderResult<unknown> => {
        const list = given.length === 0 ? LISTS[command] : undefined;
        return list === undefined ? (next(command, given) as vscode.ProviderResult<unknown>) : vscode.commands.executeCommand(list);
      },
      provideInlayHints: async (document, range, token, next) => {
        // VS Code waits with its next request for as long as earlier ones took. A server that is still starting answers late, but asks for
        // another request as soon as a function has been traced.
        if (starting) {
          starting = false;
          return Promise.race([next(document, range, token), later(START_PATIENCE)]);
        }
        // VS Code would draw hints of a text that has changed on the way, at the lines of before.
        for (;;) {
          const { version } = document;
          const hints = await next(document, range, token);
          if (document.version === version || token.isCancellationRequested) {
            return hints;
          }
        }
      },
      handleWorkDoneProgress: (token, step, next) => {
        bars.show(token, step, () => {
          next(token, step);
        });
      },
      window: {
        showDocument: async (parameters, token, next) => {
          const uri = vscode.Uri.parse(parameters.uri);
          return uri.scheme.startsWith(MADE) ? showBeside(uri) : next(parameters, token);
        },
      },
      workspace: {
        // Told without values, the server asks, and gets those that people have set.
        didChangeConfiguration: async () => {
          await client().sendNotification("workspace/didChangeConfiguration", { settings: null });
        },
        configuration: async (parameters, token, next) => {
          const given = await next(parameters, token);
          const answers: unknown[] = Array.isArray(given) ? given : [];
          return parameters.items.map((item, index) =>
            item.section === SECTION
              ? explicitSettings(
                  item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri),
                  keys,
                )
              : answers[index],
          );
        },
      },
    },
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue }),
      closed: () => closed(listener.died()),
    },
  };
}

async function later(milliseconds: number): Promise<undefined> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function closed(why: string | undefined): CloseHandlerResult {
  return why === undefined
    ? { action: CloseAction.Restart, handled: true }
    : { action: CloseAction.DoNotRestart, message: why };
}

/** Opens a made document beside the source, where a lit line can be seen; the cursor stays in the source. */
async function showBeside(uri: vscode.Uri): Promise<{ success: boolean }> {
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.window.showTextDocument(document, {
    viewColumn: vscode.ViewColumn.Beside,
    preserveFocus: true,
    preview: true,
  });
  return { success: true };
}
