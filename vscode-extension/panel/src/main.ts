/** The panel's beginning in VS Code, which is its host. */

import { layoutWorker } from "./inflated";
import { EDITOR, type FromPanel, type Kept, type ToPanel } from "./messages";
import { wholePage } from "./start";

declare function acquireVsCodeApi(): {
  postMessage(message: FromPanel): void;
  setState(state: Kept): void;
};

const vscode = acquireVsCodeApi();

async function begin(): Promise<void> {
  const hear = wholePage(await layoutWorker(), {
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
}

void begin();
