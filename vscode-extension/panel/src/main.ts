/** The page's beginning: joins the panel to VS Code, and ELK to its worker. */

import ELK from "elkjs/lib/elk-api";
import worker from "text:elkjs/lib/elk-worker.min.js";

import { App } from "./app";
import { Layouter } from "./layout";
import type { FromPanel, Kept, ToPanel } from "./messages";
import type { Metrics } from "./sizes";

declare function acquireVsCodeApi(): {
  postMessage(message: FromPanel): void;
  setState(state: Kept): void;
};

const vscode = acquireVsCodeApi();
const script = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
const metrics: Metrics = { character: characterWidth(), line: 17 };
const layouter = new Layouter(() => new ELK({ workerFactory: () => new Worker(script) }), metrics);

const app = new App(
  {
    send: (message) => {
      vscode.postMessage(message);
    },
    keep: (kept) => {
      vscode.setState(kept);
    },
  },
  layouter,
  metrics.line,
);
document.body.append(app.element);
addEventListener("message", (event: MessageEvent<ToPanel>) => {
  app.hear(event.data);
});
vscode.postMessage({ type: "ready" });

/** How wide a character is in the editor's font, in the size of the graph's texts. */
function characterWidth(): number {
  const probe = document.createElement("span");
  probe.className = "probe";
  probe.append("0".repeat(100));
  document.body.append(probe);
  const width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return width > 0 ? width : 7.3;
}
