/** The panel's beginning in VS Code, which is its host. */

import worker from "text:elkjs/lib/elk-worker.min.js";

import { EDITOR, type FromPanel, type Kept, type ToPanel } from "./messages";
import { wholePage } from "./start";

declare function acquireVsCodeApi(): {
  postMessage(message: FromPanel): void;
  setState(state: Kept): void;
};

const vscode = acquireVsCodeApi();
const hear = wholePage(worker, {
  can: EDITOR,
  send: (message) => {
    vscode.postMessage(message);
  },
  keep: (kept) => {
    vscode.setState(kept);
  },
});
addEventListener("message", (event: MessageEvent<ToPanel>) => {
  hear(event.data);
});
vscode.postMessage({ type: "ready" });
