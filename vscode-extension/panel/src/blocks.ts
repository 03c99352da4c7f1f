/**
 * A layout that is there at once, however large the scene: in each box columns from left to right in the order of the program, about as
 * wide as a screen is for its height. Its edges are straight, and drawn only for what is chosen.
 */

import type { Layout, PlacedEdge, PlacedNode } from "./layout";
import type { Scene, SceneNode } from "./scene";
import { around, type Metrics, type Point, type Rect, sizeOf } from "./sizes";

const GAP = 14;
const MARGIN = 12;
const HEAD = 34;
/** Of a tall box, the title has this share of the height, so that it is read when all of the box is seen. */
const TITLE = 0.05;
/** Width by height that is aimed at. */
const SHAPE = 1.2;
/** Heights of columns that are tried. */
const TRIED = 24;

interface Block {
  readonly node: SceneNode;
  readonly width: number;
  readonly height: number;
  readonly head: number;
  /** Where what is in it stands, from its corner. */
  readonly inside: readonly { readonly at: Point; readonly block: Block }[];
}

export function blocks(scene: Scene, metrics: Metrics): Layout {
  const { inside, width, height } = packed(scene.nodes.map((node) => block(node, metrics)), 0, MARGIN);
  const nodes: PlacedNode[] = [];
  const place = ({ node, ...block }: Block, at: Point, depth: number): void => {
    nodes.push({ node, depth, ...at, width: block.width, height: block.height, head: block.head });
    for (const inner of block.inside) {
      place(inner.block, { x: at.x + inner.at.x, y: at.y + inner.at.y }, depth + 1);
    }
  };
  for (const { at, block } of inside) {
    place(block, at, 0);
  }
  const byId = new Map<string, Rect>(nodes.map((placed) => [placed.node.id, placed]));
  const edges = scene.edges.flatMap((edge): PlacedEdge[] => {
    const [from, to] = [byId.get(edge.source), byId.get(edge.target)];
    if (from === undefined || to === undefined) {
      return [];
    }
    const points = [end(from, to), end(to, from)];
    return [{ edge, points, label: undefined, bounds: around(points) }];
  });
  return { width, height, nodes, edges, isPacked: true };
}

function block(node: SceneNode, metrics: Metrics): Block {
  if (node.kind !== "open") {
    return { node, ...sizeOf(node, metrics), head: 0, inside: [] };
  }
  const title = sizeOf({ ...node, sources: [], foot: "" }, metrics).width;
  const children = node.children.map((child) => block(child, metrics));
  const head = Math.max(HEAD, TITLE * packed(children, HEAD, MARGIN).height);
  const { inside, width, height } = packed(children, head, MARGIN);
  return { node, width: Math.max(width, title), height, inside, head };
}

type Packed = Pick<Block, "inside" | "width" | "height">;

/** Blocks in columns below `top`, in the shape that is seen largest. */
function packed(all: readonly Block[], top: number, margin: number): Packed {
  const tallest = Math.max(0, ...all.map((each) => each.height));
  const total = all.reduce((sum, each) => sum + each.height + GAP, 0);
  let best = inColumns(all, total, top, margin);
  for (let tried = 0; tried < TRIED; tried++) {
    const columns = inColumns(all, tallest * (total / Math.max(1, tallest)) ** (tried / TRIED), top, margin);
    if (extent(columns) < extent(best)) {
      best = columns;
    }
  }
  return best;
}

function extent({ width, height }: Packed): number {
  return Math.max(width / SHAPE, height);
}

function inColumns(all: readonly Block[], most: number, top: number, margin: number): Packed {
  const inside: { at: Point; block: Block }[] = [];
  const begin = top + (top > 0 ? 0 : margin);
  let [x, y, column, height] = [margin, begin, 0, begin];
  for (const block of all) {
    if (y > begin && y + block.height > begin + most + 1) {
      [x, y, column] = [x + column + GAP, begin, 0];
    }
    inside.push({ at: { x, y }, block });
    column = Math.max(column, block.width);
    height = Math.max(height, y + block.height);
    y += block.height + GAP;
  }
  return { inside, width: x + column + margin, height: height + margin };
}

/** Where the line from the middle of one rectangle to that of another leaves the first. */
function end(from: Rect, to: Rect): Point {
  const [x, y] = [from.x + from.width / 2, from.y + from.height / 2];
  const [dx, dy] = [to.x + to.width / 2 - x, to.y + to.height / 2 - y];
  const part = Math.min(
    dx === 0 ? Infinity : from.width / 2 / Math.abs(dx),
    dy === 0 ? Infinity : from.height / 2 / Math.abs(dy),
    0.5,
  );
  return { x: x + dx * part, y: y + dy * part };
}
