/** The output channels: what the server says of itself, and what user code prints while it is traced. */

import * as vscode from "vscode";

import { oneLine } from "../panel/src/inert";

export class Logs implements vscode.Disposable {
  /** The server's log, the protocol's trace and our own words. */
  readonly client = vscode.window.createOutputChannel("jaxsight", { log: true });
  /** What user code prints, by file. */
  readonly prints = vscode.window.createOutputChannel("jaxsight: output of your code");
  private lastPrinted = "";

  /** Adds what the code of a file printed; a heading tells when the file changes. */
  print(uri: string, text: string): void {
    if (uri !== this.lastPrinted) {
      this.prints.appendLine(`--- ${oneLine(vscode.workspace.asRelativePath(vscode.Uri.parse(uri)))}`);
      this.lastPrinted = uri;
    }
    this.prints.append(text);
  }

  dispose(): void {
    this.client.dispose();
    this.prints.dispose();
  }
}
