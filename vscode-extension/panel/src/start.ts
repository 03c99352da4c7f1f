/** Puts the panel into a page: its host on one side, ELK in a worker on the other. */

import ELK from "elkjs/lib/elk-api";

import { App } from "./app";
import { blocks } from "./blocks";
import { h } from "./dom";
import { Layouter } from "./layout";
import type { Drawn, Host, ToPanel } from "./messages";
import { Model } from "./model";
import { picture } from "./saved";
import { Boxes, type Scene } from "./scene";
import type { Metrics } from "./sizes";

export interface Panels {
  /** Makes a panel for a host. */
  make(host: Host, ids?: string): App;
  /** The whole graph, as a panel shows it first. */
  picture(drawn: Drawn): Promise<SVGSVGElement>;
  /** The same in columns, without waiting. */
  columns(drawn: Drawn): SVGSVGElement;
}

/** @param worker the script of the layout's worker: a page without network can start it from text alone. */
export function panels(worker: string): Panels {
  const script = URL.createObjectURL(new Blob([worker], { type: "text/javascript" }));
  const metrics: Metrics = { character: characterWidth(), line: 17 };
  const layouter = (): Layouter => new Layouter(() => new ELK({ workerFactory: () => new Worker(script) }), metrics);
  return {
    make: (host, ids) => new App(host, layouter(), metrics.line, ids),
    picture: async (drawn) => picture(await layouter().layout(firstScene(drawn)), metrics.line),
    columns: (drawn) => picture(blocks(firstScene(drawn), metrics), metrics.line),
  };
}

function firstScene(drawn: Drawn): Scene {
  return new Boxes(new Model(drawn)).scene();
}

/** A panel as the whole page. @returns tells it what the host says. */
export function wholePage(worker: string, host: Host): (message: ToPanel) => void {
  const app = panels(worker).make(host);
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
