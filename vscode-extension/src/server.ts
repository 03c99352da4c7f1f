/** The server's process and the connection to it. One server serves all folders; it has a tracer for each. */

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

import type { Listener } from "./connection";
import { type Launch, launch, launchAsLast } from "./launch";
import type { Logs } from "./logs";
import type { Messages } from "./messages";
import type { Pythons } from "./pythons";
import type { Status } from "./status";
import { rememberUse } from "./wanted";

const RESTARTS = 5;
/** Milliseconds in which so many deaths mean that it is no use. */
const RESTART_WINDOW = 180_000;

export class Server {
  private client: LanguageClient | undefined;
  private starting: Promise<void> | undefined;
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
    private readonly messages: Messages,
    private readonly pythons: Pythons,
    /** A process that was started before activation. */
    private early: Launch | undefined,
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
        void this.tellInterpreters().then(() => pythons.remember());
      }),
      // Where shapes are shown depends on what other extensions show.
      vscode.extensions.onDidChange(() => {
        void this.client?.sendNotification("workspace/didChangeConfiguration", { settings: null });
      }),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("basedpyright.analysis.inlayHints") || change.affectsConfiguration("python.analysis.inlayHints")) {
          void this.client?.sendNotification("workspace/didChangeConfiguration", { settings: null });
        }
      }),
    );
  }

  /** Starts the server unless it was started; resolved once it has answered `initialize`, or cannot. */
  async whenStarted(): Promise<void> {
    await (this.starting ??= this.begin()).catch(() => undefined); // The status says why.
  }

  private async begin(): Promise<void> {
    try {
      const launched = this.early ?? (await this.launched());
      this.early = undefined;
      const { connection } = await library();
      this.client = connection(launched, this.logs.client, this.listener());
      await this.client.start();
      void this.checkInterpreters(launched);
    } catch (error) {
      this.logs.client.error(error instanceof Error ? error : String(error));
      this.status.fail(error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  private async launched(): Promise<Launch> {
    const last = launchAsLast();
    if (last !== undefined) {
      return last;
    }
    const { server, interpreters } = await this.pythons.atStart();
    return launch(server, interpreters);
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
    await (this.starting = this.begin());
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

  private listener(): Listener {
    return {
      status: (status) => {
        this.status.update(status);
      },
      fileStatus: (status) => {
        this.status.updateFile(status);
        if (status.usesJax) {
          void rememberUse(this.context);
        }
      },
      said: (said) => {
        void this.messages.show(said);
      },
      printed: (uri, text) => {
        this.logs.print(uri, text);
      },
      contentChanged: (uri) => {
        this.refreshed.fire(uri);
      },
      panelChanged: (uri) => {
        this.news.fire(uri);
      },
      starting: () => {
        this.status.restarting();
      },
      running: () => {
        void vscode.commands.executeCommand("setContext", "jaxsight.running", true);
        this.started.fire();
      },
      died: () => this.died(),
    };
  }

  /** The process ended by itself: a new one, unless that has not helped several times. */
  private died(): string | undefined {
    const now = Date.now();
    this.deaths.push(now);
    const recent = this.deaths.filter((time) => now - time < RESTART_WINDOW).length;
    if (recent < RESTARTS) {
      this.logs.client.warn("The server exited; restarting it.");
      return undefined;
    }
    const message = `The server exited ${recent} times in three minutes. See the log for details; run “jaxsight: Restart” to try again.`;
    this.status.fail(message);
    return message;
  }

  /** The server may have been started with the choice of last time: tells it if that has changed. */
  private async checkInterpreters({ interpreters }: Launch): Promise<void> {
    if (JSON.stringify(await this.pythons.byFolder()) !== JSON.stringify(interpreters)) {
      await this.tellInterpreters();
    }
    await this.pythons.remember();
  }

  private async tellInterpreters(): Promise<void> {
    const interpreters = await this.pythons.byFolder();
    await this.client?.sendNotification("jaxsight/interpreters", { interpreters });
  }
}

/** The client library's bundle. It takes the extension host's thread for a while, so others that wait for this activation go first. */
async function library(): Promise<typeof import("./connection.js")> {
  await new Promise((resolve) => setImmediate(resolve));
  return import("./connection.js");
}
