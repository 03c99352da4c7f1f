/** The language status item: which Python traces, why that one, and what it is doing. */

import * as vscode from "vscode";

/** What `jaxsight/status` carries, for one root. */
export interface RootStatus {
  readonly root: string;
  readonly state: "starting" | "ready" | "busy" | "failed" | "untrusted";
  readonly detail: string;
  readonly python: string;
  readonly reason: string;
  readonly jax: string;
}

const SELECTOR: vscode.DocumentSelector = [
  { language: "python", scheme: "file" },
  { language: "python", scheme: "vscode-notebook-cell" },
];

export class Status implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem("jaxsight", SELECTOR);
  private readonly byRoot = new Map<string, RootStatus>();
  private readonly subscription = vscode.window.onDidChangeActiveTextEditor(() => {
    this.show();
  });

  constructor() {
    this.item.name = "jaxsight";
    this.item.text = "jaxsight";
    this.item.detail = "starting";
    this.item.busy = true;
    this.item.command = { title: "Interpreter", command: "jaxsight.chooseInterpreter" };
  }

  /** The server tells of one of its roots. */
  update(status: RootStatus): void {
    this.byRoot.set(status.root, status);
    this.show();
  }

  /** The server itself cannot be had; the words say why. */
  fail(words: string): void {
    this.byRoot.clear();
    this.item.busy = false;
    this.item.severity = vscode.LanguageStatusSeverity.Error;
    this.item.text = "jaxsight is not running";
    this.item.detail = words;
    this.item.command = { title: "Show log", command: "jaxsight.showLogs" };
  }

  /** A new server is starting. */
  restarting(): void {
    this.byRoot.clear();
    this.item.busy = true;
    this.item.severity = vscode.LanguageStatusSeverity.Information;
    this.item.text = "jaxsight";
    this.item.detail = "starting";
  }

  dispose(): void {
    this.subscription.dispose();
    this.item.dispose();
  }

  private show(): void {
    const status = this.current();
    if (status === undefined) {
      return;
    }
    this.item.busy = status.state === "starting" || status.state === "busy";
    this.item.severity =
      status.state === "failed"
        ? vscode.LanguageStatusSeverity.Error
        : status.state === "untrusted"
          ? vscode.LanguageStatusSeverity.Warning
          : vscode.LanguageStatusSeverity.Information;
    this.item.text =
      status.state === "untrusted"
        ? vscode.workspace.isTrusted
          ? "jaxsight: no code runs until you decide"
          : "jaxsight: no code runs until you trust this workspace"
        : status.jax !== ""
          ? `JAX ${status.jax}`
          : "jaxsight";
    const why = status.reason !== "" ? `${status.python} (${status.reason})` : status.python;
    this.item.detail = [status.detail, why].filter((part) => part !== "").join(" · ");
    this.item.command =
      status.state !== "untrusted"
        ? { title: "Choose interpreter", command: "jaxsight.chooseInterpreter" }
        : vscode.workspace.isTrusted
          ? { title: "Decide", command: "jaxsight.trust" }
          : { title: "Manage trust", command: "workbench.trust.manage" };
  }

  /** That of the root which holds the active editor's file; else the only one. */
  private current(): RootStatus | undefined {
    const path = vscode.window.activeTextEditor?.document.uri.path ?? "";
    const roots = [...this.byRoot.keys()].filter((root) => path.startsWith(`${vscode.Uri.parse(root).path}/`));
    const [longest] = roots.sort((a, b) => b.length - a.length);
    return this.byRoot.get(longest ?? "") ?? [...this.byRoot.values()].at(-1);
  }
}
