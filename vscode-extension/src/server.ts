/** The server's process and the connection to it. One server serves all folders; it has a tracer for each. */

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

import type { Logs } from "./logs";
import type { ByFolder, Pythons } from "./pythons";
import { explicitSettings, SECTION, settingKeys } from "./settings";
import type { RootStatus, Status } from "./status";

/** How the schemes of documents that the server makes begin. */
export const MADE = "jaxsight-";
const RESTARTS = 5;
/** Milliseconds in which so many deaths mean that it is no use. */
const RESTART_WINDOW = 180_000;

export class Server {
  private client: LanguageClient | undefined;
  private readonly deaths: number[] = [];
  private readonly refreshed = new vscode.EventEmitter<vscode.Uri>();

  private readonly news = new vscode.EventEmitter<vscode.Uri>();
  private readonly started = new vscode.EventEmitter<void>();

  /** A virtual document has another text now. */
  readonly onDidRefreshContent = this.refreshed.event;
  /** There are new answers about a file that a panel was asked for. */
  readonly onDidRefreshPanel = this.news.event;
  /** A server answers, the first or another one. */
  readonly onDidStart = this.started.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly logs: Logs,
    private readonly status: Status,
    private readonly pythons: Pythons,
  ) {
    context.subscriptions.push(
      this.refreshed,
      this.news,
      this.started,
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        void this.client?.sendNotification("jaxsight/trust", { trusted: true });
        void this.tellInterpreters();
      }),
      pythons.onDidChange(() => {
        void this.tellInterpreters();
      }),
    );
  }

  /** Starts the server; resolved when it has answered `initialize`. */
  async start(): Promise<void> {
    try {
      const python = await this.pythons.forServer();
      this.client = this.connection(python, await this.pythons.byFolder());
      await this.client.start();
    } catch (error) {
      this.status.fail(error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.needsStop() === true) {
      await client.stop();
    }
  }

  /** A new process, as the last resort. New tracers are had by the command `jaxsight.restart`. */
  async restart(): Promise<void> {
    this.status.restarting();
    await this.stop();
    await this.start();
  }

  get running(): boolean {
    return this.client?.isRunning() === true;
  }

  /** Asks the server; `undefined` when there is none. */
  async request<Answer>(
    method: string,
    parameters: unknown,
    token?: vscode.CancellationToken,
  ): Promise<Answer | undefined> {
    // A token that is not given must not be passed: it would become one more parameter.
    const rest = token === undefined ? [] : [token];
    return this.running ? await this.client?.sendRequest<Answer>(method, parameters, ...rest) : undefined;
  }

  private connection(python: string, interpreters: ByFolder): LanguageClient {
    const start = this.context.asAbsolutePath("bundled/start.py");
    const command = {
      command: python,
      // Isolated: neither the environment's variables nor its packages reach the server.
      args: ["-I", "-S", "-X", "utf8", start, "server"],
      transport: TransportKind.stdio,
    };
    const client = new LanguageClient(
      SECTION,
      "jaxsight",
      { run: command, debug: command },
      this.options(interpreters),
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
      this.status.update(status);
    });
    client.onNotification("jaxsight/output", (output: { uri: string; text: string }) => {
      this.logs.print(output.uri, output.text);
    });
    client.onNotification("jaxsight/textDocumentContentRefresh", (made: { uri: string }) => {
      this.refreshed.fire(vscode.Uri.parse(made.uri));
    });
    client.onNotification("jaxsight/panelRefresh", (panel: { uri: string }) => {
      this.news.fire(vscode.Uri.parse(panel.uri));
    });
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Starting) {
        this.status.restarting();
      } else if (newState === State.Running) {
        this.started.fire();
      }
    });
    return client;
  }

  private options(interpreters: ByFolder): LanguageClientOptions {
    const keys = settingKeys(this.context);
    return {
      documentSelector: [
        { language: "python", scheme: "file" },
        { language: "python", scheme: "untitled" },
        { language: "python", notebook: "*" },
      ],
      outputChannel: this.logs.client,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: {
        ...explicitSettings(undefined, keys),
        trusted: vscode.workspace.isTrusted,
        interpreters,
      },
      markdown: { isTrusted: { enabledCommands: ["jaxsight.show", "jaxsight.chooseSet"] } },
      middleware: {
        window: {
          showDocument: async (parameters, token, next) => {
            const uri = vscode.Uri.parse(parameters.uri);
            return uri.scheme.startsWith(MADE) ? showBeside(uri) : next(parameters, token);
          },
        },
        workspace: {
          // Told without values, the server asks, and gets those that people have set.
          didChangeConfiguration: async () => {
            await this.client?.sendNotification("workspace/didChangeConfiguration", { settings: null });
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
        closed: () => this.died(),
      },
    };
  }

  /** The process ended by itself: a new one, unless that has not helped several times. */
  private died(): CloseHandlerResult {
    const now = Date.now();
    this.deaths.push(now);
    const recent = this.deaths.filter((time) => now - time < RESTART_WINDOW).length;
    if (recent < RESTARTS) {
      this.logs.client.warn("The server ended; starting it again.");
      return { action: CloseAction.Restart, handled: true };
    }
    const message = `The server ended ${recent} times in three minutes. The log tells more; “jaxsight: Restart” tries again.`;
    this.status.fail(message);
    return { action: CloseAction.DoNotRestart, message };
  }

  private async tellInterpreters(): Promise<void> {
    const interpreters = await this.pythons.byFolder();
    await this.client?.sendNotification("jaxsight/interpreters", { interpreters });
  }
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
