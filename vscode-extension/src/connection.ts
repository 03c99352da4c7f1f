/**
 * The connection to a server's process, by VS Code's library for language clients. That library takes longer to load than all the rest, so
 * this is a bundle of its own, which is read once the extension is active and a Python has been found.
 */

import * as vscode from "vscode";
import {
  CloseAction,
  type CloseHandlerResult,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  State,
  TransportKind,
} from "vscode-languageclient/node";

import { MADE, PROGRAMS } from "./made";
import { ProgressBars } from "./progress";
import { explicitSettings, SECTION, settingKeys } from "./settings";
import type { ByFolder } from "./pythons";
import type { FileStatus, RootStatus } from "./status";

/** Milliseconds that the first request for hints takes at most. */
const START_PATIENCE = 40;

/** Our commands that list what a command of the server takes. */
const LISTS: Readonly<Record<string, string>> = {
  "jaxsight.chooseTarget": "jaxsight.pickTarget",
  "jaxsight.installTarget": "jaxsight.installCompiler",
};

/** Who is told what the server says unasked. */
export interface Listener {
  status(status: RootStatus): void;
  fileStatus(status: FileStatus): void;
  printed(uri: string, text: string): void;
  contentChanged(uri: vscode.Uri): void;
  panelChanged(uri: vscode.Uri): void;
  starting(): void;
  running(): void;
  /** The process ended by itself; why there is to be no other one, if there is not. */
  died(): string | undefined;
}

/** What a server is started with. */
export interface Start {
  readonly context: vscode.ExtensionContext;
  readonly log: vscode.LogOutputChannel;
  readonly python: string;
  readonly interpreters: ByFolder;
}

/** A client that has not been started. */
export function connection(start: Start, listener: Listener): LanguageClient {
  const command = {
    command: start.python,
    // Isolated: neither the environment's variables nor its packages reach the server.
    // Whether the workspace's code runs, VS Code's own trust decides: `trusted` below, and a notification when it is granted.
    args: ["-I", "-S", "-X", "utf8", start.context.asAbsolutePath("bundled/start.py"), "server", "--trust", "editor"],
    transport: TransportKind.stdio,
    // A command without a folder is looked up in the working folder, too (always on Windows), which would be the workspace.
    options: { cwd: start.context.extensionPath },
  };
  const client: LanguageClient = new LanguageClient(
    SECTION,
    "jaxsight",
    { run: command, debug: command },
    options(start, listener, () => client),
  );
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
    }
  });
  return client;
}

function options({ context, log, interpreters }: Start, listener: Listener, client: () => LanguageClient): LanguageClientOptions {
  const keys = settingKeys(context);
  const bars = new ProgressBars(client);
  let starting = true;
  return {
    documentSelector: [
      { language: "python", scheme: "file" },
      { language: "python", scheme: "untitled" },
      { language: "python", notebook: "*" },
      ...PROGRAMS.flatMap((language) => [{ scheme: MADE + language }, { language, scheme: "file" }]),
      { scheme: `${MADE}hlo-metadata` },
    ],
    // Hovers link to documents of their function; no other command runs from Markdown.
    markdown: { isTrusted: { enabledCommands: ["jaxsight.show"] } },
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: {
      ...explicitSettings(undefined, keys),
      trusted: vscode.workspace.isTrusted,
      interpreters,
    },
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
