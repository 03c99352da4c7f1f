/** The commands of the palette. Those with the server's names (`jaxsight.show`…) are registered by the client itself. */

import { parse } from "node:path";
import * as vscode from "vscode";

import { functionAt } from "./functions";
import type { Logs } from "./logs";
import type { Pythons } from "./pythons";
import type { Server } from "./server";

export function registerCommands(
  context: vscode.ExtensionContext,
  server: Server,
  logs: Logs,
  pythons: Pythons,
): vscode.Disposable[] {
  const command = (name: string, run: () => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(name, run);
  return [
    command("jaxsight.restartServer", () => server.restart()),
    command("jaxsight.restartTracers", async () => {
      await server.whenStarted();
      await vscode.commands.executeCommand("jaxsight.restart");
    }),
    command("jaxsight.showLogs", () => {
      logs.client.show();
    }),
    command("jaxsight.showPrints", () => {
      logs.prints.show();
    }),
    command("jaxsight.chooseInterpreter", () => pythons.choose()),
    command("jaxsight.showJaxpr", () => runOnFunction("jaxsight.show", ["jaxpr"])),
    command("jaxsight.sourcerizeFunction", () => runOnFunction("jaxsight.show", ["pretty"])),
    command("jaxsight.sourcerizeProgramFile", () => {
      const uri = vscode.window.activeTextEditor?.document.uri;
      return uri === undefined
        ? undefined
        : vscode.commands.executeCommand("jaxsight.show", uri.toString(), parse(uri.path).name, "pretty");
    }),
    command("jaxsight.measureFunction", () => runOnFunction("jaxsight.measure", [])),
    command("jaxsight.extractReproAtCursor", () => runOnFunction("jaxsight.extractRepro", [])),
    command("jaxsight.runFileUntilSeen", () => {
      const uri = vscode.window.activeTextEditor?.document.uri.toString();
      return uri === undefined ? undefined : vscode.commands.executeCommand("jaxsight.runUntilSeen", uri);
    }),
    command("jaxsight.openSample", () => openSample(context)),
  ];
}

/** Runs a command of the server on the function at the cursor; the server says what it cannot. */
async function runOnFunction(run: string, rest: readonly string[]): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const name = functionAt(editor.document, editor.selection.active.line);
  if (name === undefined) {
    void vscode.window.showInformationMessage("Place the cursor in a function with example inputs.");
    return;
  }
  await vscode.commands.executeCommand(run, editor.document.uri.toString(), name, ...rest);
}

/** A copy of the sample, for people to change. */
async function openSample(context: vscode.ExtensionContext): Promise<void> {
  const file = vscode.Uri.joinPath(context.extensionUri, "media", "sample.py");
  const content = new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  const document = await vscode.workspace.openTextDocument({ language: "python", content });
  await vscode.window.showTextDocument(document);
}
