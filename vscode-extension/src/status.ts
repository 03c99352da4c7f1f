/**
 * What jaxsight does and with what, for the file of the active editor: the Python and JAX that trace, the target that is compiled for, and
 * whether there is anything to trace. An item of the status bar sums it up, those of the language have one part each; each changes it.
 */

import * as vscode from "vscode";

import { firstClause } from "./words";

/** What `jaxsight/status` carries, for one root. */
export interface RootStatus {
  readonly root: string;
  readonly state: "starting" | "ready" | "busy" | "failed" | "untrusted";
  readonly detail: string;
  readonly python: string;
  readonly reason: string;
  readonly jax: string;
  /** What the system keeps the folder's code from while it is looked at. */
  readonly confined: string;
}

/** What `jaxsight/fileStatus` carries, for one file. */
export interface FileStatus {
  readonly uri: string;
  readonly target: string;
  /** The device of the target, and why it is the default one. */
  readonly targetTitle?: string;
  readonly problem: "" | "missing" | "unreachable" | "waiting";
  readonly detail: string;
  readonly functions: number;
  readonly traced: number;
  readonly usesJax: boolean;
  /** Why functions that use JAX show nothing, in a clause and in full; empty where they all show something or will. */
  readonly why?: string;
  readonly whyDetail?: string;
  /** How many functions show something now. */
  readonly shown?: number;
  /** How many functions are shown with inputs that are assumed. */
  readonly assumed?: number;
}

const SELECTOR: vscode.DocumentSelector = [
  { language: "python", scheme: "file" },
  { language: "python", scheme: "vscode-notebook-cell" },
];
const PROBLEMS = {
  missing: "compiler not installed",
  unreachable: "host not reached",
  waiting: "waits for approval",
} as const;
/** Characters that the list of the language's items shows beside a headline and a command; it cuts longer texts at its edge. */
const DETAIL = 34;
/** Characters that the status bar has room for beside the items of others. */
const CLAUSE = 60;
const PRIORITY = 90;

const INTERPRETER = "jaxsight.chooseInterpreter";
const EXAMPLE_INPUTS = "jaxsight.explainExamples";
const LOG = "jaxsight.showLogs";
const CHOOSE_INTERPRETER = { title: "Change", command: INTERPRETER };
const CHOOSE_TARGET = { title: "Change", command: "jaxsight.pickTarget" };
const SHOW_LOG = { title: "Show log", command: LOG };
const SHOW_STATUS = "jaxsight.showStatus";

interface Item extends vscode.QuickPickItem {
  readonly command?: string;
}

export class Status implements vscode.Disposable {
  private readonly python = vscode.languages.createLanguageStatusItem("jaxsight", SELECTOR);
  private readonly target = vscode.languages.createLanguageStatusItem("jaxsight.target", SELECTOR);
  private readonly examples = vscode.languages.createLanguageStatusItem("jaxsight.examples", SELECTOR);
  private readonly bar = vscode.window.createStatusBarItem("jaxsight", vscode.StatusBarAlignment.Right, PRIORITY);
  private readonly byRoot = new Map<string, RootStatus>();
  private readonly byFile = new Map<string, FileStatus>();
  private readonly subscriptions: vscode.Disposable;
  /** Why there is no server. */
  private failure = "";

  constructor() {
    this.python.name = "jaxsight: Python and JAX";
    this.target.name = "jaxsight: target";
    this.examples.name = "jaxsight: example inputs";
    this.bar.name = "jaxsight";
    this.bar.command = SHOW_STATUS;
    this.subscriptions = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.show();
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.byFile.delete(document.uri.toString());
      }),
      vscode.commands.registerCommand(SHOW_STATUS, () => this.menu()),
    );
    this.show();
  }

  /** The server tells of one of its roots. */
  update(status: RootStatus): void {
    this.byRoot.set(status.root, status);
    this.show();
  }

  /** The server tells of one of the open files. */
  updateFile(status: FileStatus): void {
    this.byFile.set(vscode.Uri.parse(status.uri).toString(), status);
    this.show();
  }

  /** The server itself cannot be had; the words say why. */
  fail(words: string): void {
    this.restarting();
    this.failure = words;
    this.show();
  }

  /** A new server is starting. */
  restarting(): void {
    this.byRoot.clear();
    this.byFile.clear();
    this.failure = "";
    this.show();
  }

  dispose(): void {
    vscode.Disposable.from(this.subscriptions, this.python, this.target, this.examples, this.bar).dispose();
  }

  private show(): void {
    const root = this.root();
    const file = this.file();
    this.showPython(root);
    this.showTarget(file);
    this.showExamples(file);
    this.showBar(root, file);
  }

  private showPython(root: RootStatus | undefined): void {
    const item = this.python;
    item.busy = this.failure === "" && (root === undefined || root.state === "starting" || root.state === "busy");
    item.severity = severity(this.failure !== "" ? "failed" : root?.state);
    item.text = this.headline(root);
    item.detail = cut(this.doing(root));
    item.command = this.failure !== "" ? SHOW_LOG : root?.state === "untrusted" ? trust() : CHOOSE_INTERPRETER;
  }

  /** What is wrong or runs now; else the interpreter. The list of the language's items cuts longer texts at its edge. */
  private doing(root: RootStatus | undefined): string {
    if (this.failure !== "" || root === undefined) {
      return this.failure === "" ? "starting" : this.failure;
    }
    // Why nothing runs is in the headline.
    return root.state === "untrusted" ? "" : root.detail !== "" ? root.detail : end(root.python);
  }

  private showTarget(file: FileStatus | undefined): void {
    const item = this.target;
    const problem = file === undefined || file.problem === "" ? "" : PROBLEMS[file.problem];
    item.text = file === undefined || file.target === "" ? "target" : `target ${file.target}`;
    item.detail = problem === "" ? cut(file?.targetTitle ?? "") : problem;
    item.severity = problem === "" ? vscode.LanguageStatusSeverity.Information : vscode.LanguageStatusSeverity.Warning;
    item.command = CHOOSE_TARGET;
  }

  private showExamples(file: FileStatus | undefined): void {
    const item = this.examples;
    const why = nothingShown(file);
    item.text = examplesText(file);
    item.detail = cut(file?.why ?? (why === "" ? "" : "needed to show shapes"));
    const missing = missingModules(file);
    item.command =
      missing !== ""
        ? { title: "Choose interpreter", command: INTERPRETER }
        : why === ""
          ? { title: "More", command: EXAMPLE_INPUTS }
          : { title: "Show ways", command: remedy(why) };
  }

  private showBar(root: RootStatus | undefined, file: FileStatus | undefined): void {
    const bar = this.bar;
    const isFailed = this.failure !== "" || root?.state === "failed";
    const isEmpty = nothingShown(file) !== "";
    const hasProblem = file !== undefined && file.problem !== "" && !isEmpty;
    const needsUser = isFailed || root?.state === "untrusted";
    if (!isPython() || (file?.usesJax !== true && !needsUser)) {
      bar.hide();
      return;
    }
    const isBusy = root === undefined || root.state === "starting" || root.state === "busy";
    const sign = isFailed ? "$(error)" : needsUser ? "$(shield)" : isBusy ? "$(loading~spin)" : hasProblem ? "$(warning)" : isEmpty ? "$(info)" : "$(circuit-board)";
    bar.text = `${sign} ${this.summary(root, file)}`;
    bar.backgroundColor = isFailed
      ? new vscode.ThemeColor("statusBarItem.errorBackground")
      : hasProblem
        ? new vscode.ThemeColor("statusBarItem.warningBackground")
        : undefined;
    const lines = [this.headline(root), ...this.lines(root, file)];
    bar.tooltip = lines.join("\n");
    bar.accessibilityInformation = { label: [`jaxsight: ${this.summary(root, file)}`, ...lines].join(", ") };
    bar.show();
  }

  private summary(root: RootStatus | undefined, file: FileStatus | undefined): string {
    const why = this.why(root, file);
    if (why !== "") {
      return `jaxsight: ${why}`;
    }
    const target = file === undefined || file.target === "" ? "jaxsight" : file.target;
    const missing = missingModules(file);
    return missing === "" ? target : `${target} · ${missing}`;
  }

  /** Why nothing is shown, in a clause; empty where something is, or is going to be. */
  private why(root: RootStatus | undefined, file: FileStatus | undefined): string {
    if (this.failure !== "") {
      return clause(this.failure);
    }
    switch (root?.state) {
      case "failed":
        return clause(root.detail);
      case "untrusted":
        return "not trusted";
      default:
        return nothingShown(file);
    }
  }

  private headline(root: RootStatus | undefined): string {
    if (this.failure !== "") {
      return "jaxsight is not running";
    }
    if (root?.state === "untrusted") {
      return vscode.workspace.isTrusted
        ? "jaxsight: no code runs until you decide"
        : "jaxsight: no code runs until you trust this workspace";
    }
    if (root?.state === "failed") {
      return "jaxsight cannot trace";
    }
    return root !== undefined && root.jax !== "" ? `JAX ${root.jax}` : "jaxsight";
  }

  /** All that is known, in full. */
  private lines(root: RootStatus | undefined, file: FileStatus | undefined): string[] {
    const problem = file === undefined || file.problem === "" ? "" : ` (${PROBLEMS[file.problem]})`;
    return [
      this.failure,
      root?.detail ?? "",
      root === undefined || root.python === "" ? "" : `${root.python} (${root.reason})`,
      file === undefined || file.target === "" ? "" : `target ${file.target}${problem}`,
      file?.targetTitle ?? "",
      file === undefined ? "" : examplesText(file),
      file?.whyDetail ?? "",
    ].filter((line) => line !== "");
  }

  /** A list of all that can be changed. Where nothing is shown, it begins with why, and with what helps. */
  private async menu(): Promise<void> {
    const root = this.root();
    const file = this.file();
    const why = this.why(root, file) || missingModules(file);
    const isRunning = root?.state === "starting" || root?.state === "busy";
    const items: Item[] = [
      {
        label: "$(circuit-board) Target",
        description: file?.target ?? "",
        detail: file === undefined || file.problem === "" ? (file?.targetTitle ?? "Kernels, launches and memory are shown for it") : file.detail,
        command: "jaxsight.pickTarget",
      },
      {
        label: "$(symbol-misc) Interpreter",
        description: root === undefined || root.jax === "" ? "" : `JAX ${root.jax}`,
        detail: root === undefined || root.python === "" ? "None yet" : `${root.python} (${root.reason})`,
        command: INTERPRETER,
      },
      {
        label: "$(symbol-parameter) Example inputs",
        description: examplesText(file),
        detail: "Write them, record a run, or take a proposal",
        command: EXAMPLE_INPUTS,
      },
      ...(root?.state === "untrusted" ? [{ label: `$(shield) ${trust().title}`, detail: root.detail, command: trust().command }] : []),
      separator(""),
      ...(isRunning ? [{ label: "$(debug-stop) Stop", description: root.detail, command: "jaxsight.restartTracers" }] : []),
      { label: "$(output) Show log", command: LOG },
      { label: "$(refresh) Restart", command: "jaxsight.restartServer" },
      ...(root === undefined || root.confined === ""
        ? []
        : [{ label: "$(lock) Confined", description: "", detail: root.confined, command: LOG }]),
    ];
    const doing = [this.failure, root?.detail ?? "", file?.whyDetail ?? ""].find((text) => text !== "");
    const options = { title: "jaxsight", matchOnDescription: true, ...(doing === undefined ? {} : { placeHolder: doing }) };
    const picked = await vscode.window.showQuickPick(why === "" ? items : beginning(why, this.remedy(root, file), items), options);
    if (picked?.command !== undefined) {
      await vscode.commands.executeCommand(picked.command);
    }
  }

  /** The command that helps where nothing is shown. */
  private remedy(root: RootStatus | undefined, file: FileStatus | undefined): string {
    if (this.failure !== "" || root?.state === "failed") {
      return INTERPRETER;
    }
    return root?.state === "untrusted" ? trust().command : remedy(nothingShown(file) || missingModules(file));
  }

  /** That of the root which holds the active editor's file; else the only one. */
  private root(): RootStatus | undefined {
    const path = vscode.window.activeTextEditor?.document.uri.path ?? "";
    const roots = [...this.byRoot.keys()].filter((root) => path.startsWith(`${vscode.Uri.parse(root).path}/`));
    const [longest] = roots.sort((a, b) => b.length - a.length);
    return this.byRoot.get(longest ?? "") ?? [...this.byRoot.values()].at(-1);
  }

  /** That of the active editor's file, or of the notebook of its cell. */
  private file(): FileStatus | undefined {
    const document = vscode.window.activeTextEditor?.document;
    const notebook = vscode.window.activeNotebookEditor?.notebook.uri;
    const uri = document?.uri.scheme === "vscode-notebook-cell" ? notebook : document?.uri;
    return this.byFile.get(uri?.toString() ?? "");
  }
}

function isPython(): boolean {
  return vscode.window.activeTextEditor?.document.languageId === "python";
}

function severity(state: RootStatus["state"] | undefined): vscode.LanguageStatusSeverity {
  switch (state) {
    case "failed":
      return vscode.LanguageStatusSeverity.Error;
    case "untrusted":
      return vscode.LanguageStatusSeverity.Warning;
    default:
      return vscode.LanguageStatusSeverity.Information;
  }
}

function trust(): vscode.Command {
  return vscode.workspace.isTrusted
    ? { title: "Decide", command: "jaxsight.trust" }
    : { title: "Manage trust", command: "workbench.trust.manage" };
}

/** Why nothing of a file is shown, in a clause; empty where something is, or is going to be. */
function nothingShown(file: FileStatus | undefined): string {
  if (file?.why === undefined) {
    return file?.traced === 0 ? "no example inputs" : "";
  }
  return file.shown === 0 ? file.why.replaceAll("`", "") : "";
}

const NOT_FOUND = /^modules? .* not found/;

/** The modules that are missing, in a clause, also where functions are shown; else empty. */
function missingModules(file: FileStatus | undefined): string {
  const why = file?.why?.replaceAll("`", "") ?? "";
  return NOT_FOUND.test(why) ? clause(why) : "";
}

/** The command that helps against a reason. */
function remedy(why: string): string {
  if (NOT_FOUND.test(why)) {
    return INTERPRETER;
  }
  return why.includes("example inputs") || why.startsWith("no ") ? EXAMPLE_INPUTS : LOG;
}

/** The list with what helps at its top, under the reason. */
function beginning(why: string, command: string, items: readonly Item[]): readonly Item[] {
  const helps = items.filter((item) => item.command === command);
  return [separator(why), ...helps, separator(""), ...items.filter((item) => item.command !== command)];
}

function separator(label: string): Item {
  return { label, kind: vscode.QuickPickItemKind.Separator };
}

function examplesText(file: FileStatus | undefined): string {
  if (file === undefined || file.functions === 0) {
    return file?.usesJax === false ? "no JAX in this file" : "no functions in this file";
  }
  if (file.traced === 0) {
    return file.usesJax ? "no function here has example inputs" : "no JAX in this file";
  }
  const assumed = file.assumed ? `, ${file.assumed} assumed` : "";
  return `${file.traced} of ${file.functions} functions with example inputs${assumed}`;
}

/** The first clause of a text, without the beginning of a long path in it. */
function clause(text: string): string {
  return end(firstClause(text, Infinity), CLAUSE);
}

/** The end of a long path, which tells environments apart. */
function end(path: string, most = DETAIL): string {
  return path.length <= most ? path : `…${path.slice(1 - most)}`;
}

function cut(text: string): string {
  return text.length <= DETAIL ? text : `${text.slice(0, DETAIL - 1)}…`;
}
