/** Puts the panel into a page: its host on one side, ELK in a worker on the other. */

import ELK from "elkjs/lib/elk-api";

import { App } from "./app";
import { h } from "./dom";
import { Layouter } from "./layout";
import type { Host, ToPanel } from "./messages";
import type { Metrics } from "./sizes";

/** Makes a panel for a host. */
export type NewPanel = (host: Host, ids?: string) => App;

/** @param worker the script of the layout's worker: a page without network can start it from text alone. */
export function panels(worker: string): NewPanel {
  const script = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
  const metrics: Metrics = { character: characterWidth(), line: 17 };
  return (host, ids) => new App(host, new Layouter(() => new ELK({ workerFactory: () => new Worker(script) }), metrics), metrics.line, ids);
}

/** A panel as the whole page. @returns tells it what the host says. */
export function wholePage(worker: string, host: Host): (message: ToPanel) => void {
  const app = panels(worker)(host);
  document.body.append(h("main", { class: "whole" }, app.element));
  return (message) => {
    app.hear(message);
  };
}

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
