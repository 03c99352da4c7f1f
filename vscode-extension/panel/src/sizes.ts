/** How large texts and nodes are. */

import type { SceneNode } from "./scene";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Rect extends Point {
  readonly width: number;
  readonly height: number;
}

/** How wide a character is, and how high a line, in the panel's fonts. */
export interface Metrics {
  readonly character: number;
  readonly line: number;
}

export const PADDING = 8;

/** The lines of text in a node, from top to bottom. */
export function linesOf(node: SceneNode): readonly string[] {
  return [node.title, ...node.sources, ...(node.foot === "" ? [] : [node.foot])];
}

/** The size of a node that shows its texts. */
export function sizeOf(node: SceneNode, metrics: Metrics): { readonly width: number; readonly height: number } {
  const lines = linesOf(node);
  return { width: widthOf(lines, metrics), height: lines.length * metrics.line + 2 * PADDING };
}

export function widthOf(lines: readonly string[], metrics: Metrics): number {
  const longest = Math.max(...lines.map((line) => line.length));
  return Math.max(56, Math.ceil(longest * metrics.character + 2 * PADDING + 6));
}

export function around(points: readonly Point[]): Rect {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const x = Math.min(...xs);
  const y = Math.min(...ys);
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}
