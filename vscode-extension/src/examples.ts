/** The way to the first shapes of one's own code: a function that uses JAX is picked, and gets example inputs. */

import * as vscode from "vscode";

import type { Server } from "./server";

const USES_JAX = /^[ \t]*(?:import|from)[ \t]+(?:jax|flax|haiku|equinox|optax|numpyro|diffrax)\b/m;
const COMPUTES = /\b(?:jnp|jax|lax|nn|eqx|optax|einsum)\b/;
const HEAD = /^(?<indent>[ \t]*)(?:async[ \t]+)?def[ \t]+(?<name>\w+)/;
const ELSEWHERE = "**/{.venv,venv,env,node_modules,site-packages,build,dist,.*}/**";
/** Files of a workspace that are read in search of functions. */
const FILES = 400;
/** Functions in the list. */
const FUNCTIONS = 200;
/** The server traces a function with inputs that it proposes, without writing them. */
const SHOW_PROPOSED = "jaxsight.showProposed";
const PAGE = "https://github.com/jaxsight/jaxsight/blob/HEAD/docs/example-inputs.md";

interface Item extends vscode.QuickPickItem {
  readonly run: () => unknown;
}

interface Place {
  readonly uri: vscode.Uri;
  readonly name: string;
  readonly line: number;
  readonly computes: boolean;
}

export class Examples implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.subscriptions = vscode.Disposable.from(
      vscode.commands.registerCommand("jaxsight.firstShapes", () => this.firstShapes()),
      vscode.commands.registerCommand("jaxsight.explainExamples", () => this.explain()),
    );
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  /** What jaxsight needs, and the ways to give it. */
  private async explain(): Promise<void> {
    const items: Item[] = [
      {
        label: "$(eye) Show shapes of a function…",
        detail: "Pick a function of this file or folder; jaxsight proposes example inputs for it",
        run: () => this.firstShapes(),
      },
      {
        label: "$(record) Record a run…",
        detail: "Run your program or tests once; the calls that were made become example inputs",
        run: () => vscode.commands.executeCommand("jaxsight.record"),
      },
      {
        label: "$(file-code) Open a sample",
        detail: "Functions with example inputs, to look at and to change",
        run: () => vscode.commands.executeCommand("jaxsight.openSample"),
      },
      {
        label: "$(book) Read about example inputs",
        detail: "How they are written in a docstring, and what else counts as some",
        run: () => vscode.env.openExternal(vscode.Uri.parse(PAGE)),
      },
    ];
    const picked = await vscode.window.showQuickPick(items, {
      title: "jaxsight shows a function once it has example inputs: the types of its arguments",
      placeHolder: "Write them, record a run, or take a proposal",
    });
    await picked?.run();
  }

  private async firstShapes(): Promise<void> {
    const places = inActive();
    const found = places.length > 0 ? places : await inWorkspace();
    if (found.length === 0) {
      const sample = "Open a Sample";
      const answer = await vscode.window.showInformationMessage("No function that uses JAX was found in this folder.", sample);
      if (answer === sample) {
        await vscode.commands.executeCommand("jaxsight.openSample");
      }
      return;
    }
    const items = found.map((place) => ({
      label: place.name,
      description: `${vscode.workspace.asRelativePath(place.uri)}:${place.line + 1}`,
      place,
    }));
    const options = { title: "Function to show shapes of", matchOnDescription: true };
    const picked = await vscode.window.showQuickPick(items, options);
    if (picked !== undefined) {
      await this.show(picked.place);
    }
  }

  /** Opens the function, and has the server propose example inputs; lenses then offer to keep them. */
  private async show({ uri, name, line }: Place): Promise<void> {
    const editor = await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
    const column = editor.document.lineAt(line).text.indexOf("def ") + "def ".length;
    editor.selection = new vscode.Selection(line, column, line, column);
    editor.revealRange(editor.selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    await this.server.whenStarted();
    await vscode.commands.executeCommand(SHOW_PROPOSED, uri.toString(), name);
  }
}

/** The functions of the active editor, if it uses JAX: the one at the cursor first, then those that compute something. */
function inActive(): readonly Place[] {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (editor?.document.languageId !== "python" || !USES_JAX.test(editor.document.getText())) {
    return [];
  }
  const places = sorted(functions(editor.document.uri, editor.document.getText()));
  const at = editor.selection.active.line;
  const [around] = places.filter((place) => place.line <= at).sort((a, b) => b.line - a.line);
  return around === undefined || at === 0 ? places : [around, ...places.filter((place) => place !== around)];
}

/** Functions of the workspace's files that use JAX. */
async function inWorkspace(): Promise<readonly Place[]> {
  const found: Place[] = [];
  for (const uri of await vscode.workspace.findFiles("**/*.py", ELSEWHERE, FILES)) {
    try {
      const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
      found.push(...(USES_JAX.test(text) ? functions(uri, text) : []));
    } catch {
      continue; // It is gone, or cannot be read.
    }
  }
  return sorted(found);
}

function sorted(places: readonly Place[]): readonly Place[] {
  return [...places].sort((a, b) => Number(b.computes) - Number(a.computes)).slice(0, FUNCTIONS);
}

/** The functions at the top of a module and the methods of its classes, with qualified names. */
function functions(uri: vscode.Uri, text: string): Place[] {
  const lines = text.split(/\r\n|\r|\n/);
  const found: Place[] = [];
  let owner = "";
  lines.forEach((content, line) => {
    const inClass = /^class[ \t]+(\w+)/.exec(content);
    if (inClass !== null) {
      owner = inClass[1] ?? "";
    } else if (/^[^\s#)\]}]/.test(content)) {
      owner = "";
    }
    const head = HEAD.exec(content)?.groups;
    const indent = head?.["indent"] ?? "";
    if (head === undefined || (indent !== "" && (owner === "" || indent.length > 4))) {
      return;
    }
    const name = head["name"] ?? "";
    const next = lines.findIndex((other, index) => index > line && /^[ \t]*\S/.test(other) && !other.startsWith(`${indent} `) && !other.startsWith(`${indent}\t`) && !/^[ \t]*[)\]}#]/.test(other));
    const body = lines.slice(line + 1, next < 0 ? undefined : next).join("\n");
    found.push({ uri, name: owner !== "" && indent !== "" ? `${owner}.${name}` : name, line, computes: COMPUTES.test(body) && !name.startsWith("test_") });
  });
  return found;
}
