/** A whole drawing: on paper, and as a file with its style in it, the editor's colours as they are now. */

import style from "text:./graph.css";

import { s } from "./dom";
import { defs, edgeElement, heavyBytes, nodeElement } from "./drawing";
import type { Layout } from "./layout";

/** @param line the height of a line of text. */
export function picture({ width, height, nodes, edges, isPacked }: Layout, line: number): SVGSVGElement {
  const heavy = heavyBytes(edges);
  const svg = s("svg", {
    class: isPacked ? "graph packed" : "graph",
    xmlns: "http://www.w3.org/2000/svg",
    width: Math.ceil(width),
    height: Math.ceil(height),
    viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
  });
  svg.append(
    defs(),
    ...nodes.filter(({ node }) => node.kind === "open").map((placed) => nodeElement(placed, line)),
    ...edges.map((placed) => edgeElement(placed, placed.edge.bytes >= heavy)),
    ...nodes.filter(({ node }) => node.kind !== "open").map((placed) => nodeElement(placed, line)),
  );
  return svg;
}

/**
 * @param variable what a variable of the style is now; empty when it is not set.
 */
export function saved(layout: Layout, line: number, variable: (name: string) => string): string {
  const svg = picture(layout, line);
  const background = variable("--vscode-editor-background") || "#fff";
  svg.prepend(s("style", {}, resolved(style, variable)), s("rect", { width: "100%", height: "100%", fill: background }));
  return new XMLSerializer().serializeToString(svg);
}

/** A style without variables: those that are set by what they are, the others by what stands in for them. */
export function resolved(text: string, variable: (name: string) => string): string {
  const innermost = /var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)/g;
  let before;
  let after = text;
  do {
    before = after;
    after = before.replace(innermost, (_, name: string, otherwise: string | undefined) => {
      return variable(name).trim() || (otherwise ?? "").trim();
    });
  } while (after !== before);
  return after;
}
