/**
 * Labels of a drawing that is seen from afar, as large on the screen as any text: in each node as much of its texts as there is room for,
 * and in a box whose nodes are too small for theirs, its name and its figures. Names and expressions are cut where there is no room; a
 * figure is there as a whole or not at all.
 */

import { s } from "./dom";
import type { PlacedNode } from "./layout";
import { short } from "./words";

/** Pixels of a label's letters and lines. */
const LETTERS = 11;
const LINE = 14;
const SMALLEST = 7;
/** Letters of this font are so wide for their height. */
const SLIM = 0.6;
const PADDING = 4;
/** Characters that say something. */
const FEWEST = 5;
/** Pixels of a box that has a label over its nodes. */
const WIDE = 64;
const HIGH = 20;

export interface Drawing {
  /** Whether a node has an element. */
  isDrawn(id: string): boolean;
  /** Classes of what some of these kernels are: lit, chosen. */
  marks(kernels: readonly number[]): readonly string[];
}

/** @param all the nodes of the drawing. */
export function labels(all: readonly PlacedNode[], drawing: Drawing, scale: number): readonly SVGGElement[] {
  const byId = new Map(all.map((each) => [each.node.id, each]));
  const hasRoom = ({ node, width, height }: PlacedNode): boolean =>
    node.kind === "open" ? width * scale >= WIDE && height * scale >= HIGH : letterCount(width * scale, LETTERS) >= FEWEST && linesIn(height, scale) > 0;
  /** Whether a box is large enough for a label, and most of what is in it is not. */
  const covers = (box: PlacedNode): boolean => {
    let [room, area] = [0, 0];
    for (const child of box.node.children) {
      const inner = byId.get(child.id);
      const size = inner === undefined ? 0 : inner.width * inner.height;
      area += size;
      room += inner !== undefined && hasRoom(inner) ? size : 0;
    }
    return hasRoom(box) && 2 * room < area;
  };
  const hidden = new Set<string>();
  // Boxes come before what is in them.
  return all.flatMap((each): SVGGElement[] => {
    const { node } = each;
    if (hidden.has(node.id)) {
      node.children.forEach((child) => hidden.add(child.id));
      return [];
    }
    const { name, figures } = node.brief;
    if (node.kind !== "open") {
      return drawing.isDrawn(node.id) && hasRoom(each) ? [label(each, scale, "label")] : [];
    }
    if (covers(each)) {
      node.children.forEach((child) => hidden.add(child.id));
      return [label(each, scale, ["label", "plate", ...drawing.marks(node.kernels)].join(" "))];
    }
    const letters = Math.min(LETTERS, 0.8 * each.head * scale);
    const title = letters < SMALLEST ? "" : titleOf(name, figures, letterCount(each.width * scale, letters));
    const at = { x: each.x + PADDING / scale, y: each.y + (letters + 1) / scale };
    return title === "" ? [] : [s("g", { class: "label" }, line(title, at.x, at.y, letters, scale))];
  });
}

/** The name and as many figures as there is room for beside it, on one line. */
function titleOf(name: string, figures: readonly string[], most: number): string {
  let title = most < FEWEST ? "" : short(name, most);
  for (const figure of figures) {
    const longer = `${title} · ${figure}`;
    if (longer.length > most) {
      break;
    }
    title = longer;
  }
  return title;
}

/** The name, the figures that are no wider than the node, several on a line where they fit, and what the user wrote. */
function textsOf({ node }: PlacedNode, most: number): readonly string[] {
  if (most < FEWEST) {
    return [];
  }
  const figures: string[] = [];
  for (const figure of node.brief.figures.filter(({ length }) => length <= most)) {
    const joined = `${figures.at(-1) ?? ""} · ${figure}`;
    if (figures.length > 0 && joined.length <= most) {
      figures.splice(-1, 1, joined);
    } else {
      figures.push(figure);
    }
  }
  const sources = node.kind === "kernel" ? node.sources : [];
  return [short(node.brief.name, most), ...figures, ...sources.map((text) => short(text, most))];
}

function linesIn(height: number, scale: number): number {
  return Math.floor((height * scale - 2) / LINE);
}

function letterCount(pixels: number, letters: number): number {
  return Math.floor((pixels - 2 * PADDING) / (letters * SLIM));
}

function label(placed: PlacedNode, scale: number, classes: string): SVGGElement {
  const { x, y, width, height } = placed;
  const group = s("g", { class: classes });
  const room = Math.max(1, linesIn(height, scale));
  const lines = textsOf(placed, letterCount(width * scale, LETTERS)).slice(0, room);
  const top = y + height / 2 - (lines.length * LINE) / scale / 2;
  if (classes !== "label") {
    // Over the nodes of the box.
    group.append(s("rect", { x, y, width, height, rx: 4 }));
  }
  lines.forEach((text, index) => {
    group.append(line(text, x + PADDING / scale, top + ((index + 0.8) * LINE) / scale, LETTERS, scale));
  });
  return group;
}

function line(text: string, x: number, y: number, letters: number, scale: number): SVGTextElement {
  const element = s("text", { x, y }, text);
  element.style.fontSize = `${letters / scale}px`;
  return element;
}
