/** Nodes and edges as SVG elements: the same for the screen and for a saved picture. */

import { s } from "./dom";
import type { PlacedEdge, PlacedNode } from "./layout";
import { linesOf, PADDING, type Point } from "./sizes";

/** Edges with at least this share of the most bytes are thick. */
const HEAVY = 0.5;
const STRIPE = 4;
const ROUND = 6;

/** Edges of so many bytes are thick. */
export function heavyBytes(edges: readonly PlacedEdge[]): number {
  return HEAVY * Math.max(1, ...edges.map(({ edge }) => edge.bytes));
}

/** What arrows end with; every drawing needs it once. */
export function defs(): SVGDefsElement {
  return s(
    "defs",
    {},
    s(
      "marker",
      { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto", markerUnits: "userSpaceOnUse" },
      s("path", { class: "arrow", d: "M0,0.5 L8,4 L0,7.5 Z" }),
    ),
  );
}

/** @param line the height of its lines; `undefined`: its texts are not drawn. */
export function nodeElement({ node, x, y, width, height }: PlacedNode, line: number | undefined): SVGGElement {
  const tone = node.tone.replace(/\W+/g, "-");
  const group = s("g", {
    class: `node ${node.kind} tone-${tone}`,
    transform: `translate(${x},${y})`,
    "data-id": node.id,
  });
  group.append(s("title", {}, linesOf(node).join("\n")));
  group.append(s("rect", { width, height, rx: node.kind === "value" ? height / 2 : ROUND }));
  if (node.kind === "kernel") {
    group.append(s("rect", { class: "stripe", x: 1, y: ROUND, width: STRIPE, height: height - 2 * ROUND }));
  }
  if (line === undefined) {
    return group;
  }
  const left = PADDING + STRIPE;
  const texts = linesOf(node);
  texts.forEach((text, index) => {
    const kind = index === 0 ? "title" : index === texts.length - 1 && node.foot !== "" ? "foot" : "source";
    group.append(s("text", { class: kind, x: left, y: PADDING + (index + 0.75) * line }, text));
  });
  return group;
}

export function edgeElement({ edge, points, label }: PlacedEdge, heavy: boolean, isLabelled = true): SVGGElement {
  const group = s("g", { class: heavy ? "edge heavy" : "edge", "data-id": edge.id });
  group.append(
    s("title", {}, `${edge.values.join("\n")}\n${edge.label}`),
    s("path", { d: pathOf(points), "marker-end": "url(#arrow)" }),
  );
  if (label !== undefined && isLabelled) {
    group.append(s("text", { x: label.x, y: label.y + 4 }, edge.label));
  }
  return group;
}

/** A line through points with its corners rounded. */
export function pathOf(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (first === undefined) {
    return "";
  }
  let path = `M${spot(first)}`;
  let before = first;
  rest.forEach((point, index) => {
    const after = rest[index + 1];
    if (after === undefined) {
      path += ` L${spot(point)}`;
    } else {
      path += ` L${spot(towards(point, before))} Q${spot(point)} ${spot(towards(point, after))}`;
    }
    before = point;
  });
  return path;
}

const CORNER = 8;

function towards(from: Point, to: Point): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  const part = length === 0 ? 0 : Math.min(0.5, CORNER / length);
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

function spot({ x, y }: Point): string {
  return `${round(x)},${round(y)}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
