/** Where everything of a scene stands: ELK's layered layout, in a worker that is ended when its answer is no longer wanted. */

import type { ELK, ElkExtendedEdge, ElkNode } from "elkjs/lib/elk-api";

import type { Scene, SceneEdge, SceneNode } from "./scene";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Rect extends Point {
  readonly width: number;
  readonly height: number;
}

export interface PlacedNode extends Rect {
  readonly node: SceneNode;
  /** How many boxes it is in. */
  readonly depth: number;
}

export interface PlacedEdge {
  readonly edge: SceneEdge;
  readonly points: readonly Point[];
  /** The middle of its label; none in large graphs. */
  readonly label: Point | undefined;
  readonly bounds: Rect;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  /** Boxes before what is in them. */
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

/** How wide a character is, and how high a line, in the panel's fonts. */
export interface Metrics {
  readonly character: number;
  readonly line: number;
}

export const PADDING = 8;
const HEAD = 26;
/** Labels of more edges would take longer to place than to read. */
const LABELLED = 400;

/** The layout was given up for another one. */
export class Superseded extends Error {}

export class Layouter {
  private elk: ELK | undefined;
  private giveUp: (() => void) | undefined;

  constructor(
    private readonly start: () => ELK,
    private readonly metrics: Metrics,
  ) {}

  /**
   * @throws Superseded when another scene was to be laid out before this one was done.
   */
  async layout(scene: Scene): Promise<Layout> {
    this.giveUp?.();
    const elk = (this.elk ??= this.start());
    const given = new Promise<never>((_, reject) => {
      this.giveUp = () => {
        elk.terminateWorker();
        this.elk = undefined;
        reject(new Superseded());
      };
    });
    const labelled = scene.edges.length <= LABELLED;
    const back = backward(scene);
    try {
      const placed = await Promise.race([elk.layout(this.graph(scene, labelled, back)), given]);
      return read(scene, placed, back);
    } finally {
      if (this.elk === elk) {
        this.giveUp = undefined;
      }
    }
  }

  private graph(scene: Scene, labelled: boolean, back: ReadonlySet<string>): ElkNode {
    const layered = {
      "elk.spacing.nodeNode": "24",
      "elk.spacing.edgeNode": "14",
      "elk.spacing.edgeLabel": "4",
      "elk.layered.spacing.nodeNodeBetweenLayers": "30",
      "elk.layered.spacing.edgeNodeBetweenLayers": "12",
      "elk.layered.nodePlacement.strategy": labelled ? "NETWORK_SIMPLEX" : "BRANDES_KOEPF",
      "elk.layered.thoroughness": labelled ? "7" : "2",
    };
    return {
      id: "root",
      layoutOptions: {
        ...layered,
        "elk.algorithm": "layered",
        "elk.direction": "DOWN",
        "elk.hierarchyHandling": "INCLUDE_CHILDREN",
        "elk.edgeRouting": "POLYLINE",
        "elk.json.shapeCoords": "ROOT",
        "elk.json.edgeCoords": "ROOT",
        "elk.padding": "[top=16,left=16,bottom=16,right=16]",
      },
      children: scene.nodes.map((node) => this.node(node, layered)),
      edges: scene.edges.map((edge) => this.edge(edge, labelled, back)),
    };
  }

  private node(node: SceneNode, layered: Readonly<Record<string, string>>): ElkNode {
    if (node.kind === "open") {
      return {
        id: node.id,
        layoutOptions: {
          ...layered,
          "elk.padding": `[top=${HEAD + PADDING},left=14,bottom=14,right=14]`,
          "elk.nodeSize.constraints": "MINIMUM_SIZE",
          "elk.nodeSize.minimum": `(${this.width([node.title])}, ${HEAD})`,
        },
        children: node.children.map((child) => this.node(child, layered)),
      };
    }
    const lines = linesOf(node);
    return { id: node.id, width: this.width(lines), height: lines.length * this.metrics.line + 2 * PADDING };
  }

  private edge(edge: SceneEdge, labelled: boolean, back: ReadonlySet<string>): ElkExtendedEdge {
    const [from, to] = back.has(edge.id) ? [edge.target, edge.source] : [edge.source, edge.target];
    const found = { id: edge.id, sources: [from], targets: [to] };
    if (!labelled) {
      return found;
    }
    const width = edge.label.length * this.metrics.character * 0.9;
    return { ...found, labels: [{ text: edge.label, width, height: this.metrics.line }] };
  }

  private width(lines: readonly string[]): number {
    const longest = Math.max(...lines.map((line) => line.length));
    return Math.max(56, Math.ceil(longest * this.metrics.character + 2 * PADDING + 6));
  }
}

/** The lines of text in a node, from top to bottom. */
export function linesOf(node: SceneNode): readonly string[] {
  return [node.title, ...node.sources, ...(node.foot === "" ? [] : [node.foot])];
}

/**
 * The edges that go back in the program's order: what a loop carries. They are laid out the other way round, so that the program runs
 * downwards, whatever goes back.
 */
function backward(scene: Scene): ReadonlySet<string> {
  const order = new Map<string, number>();
  const count = (node: SceneNode): void => {
    order.set(node.id, order.size);
    node.children.forEach(count);
  };
  scene.nodes.forEach(count);
  const at = (id: string): number => order.get(id) ?? 0;
  return new Set(scene.edges.filter((edge) => at(edge.target) < at(edge.source)).map((edge) => edge.id));
}

function read(scene: Scene, placed: ElkNode, back: ReadonlySet<string>): Layout {
  const shapes = new Map<string, ElkNode>();
  const routes = new Map<string, ElkExtendedEdge>();
  const gather = (node: ElkNode): void => {
    shapes.set(node.id, node);
    node.children?.forEach(gather);
    node.edges?.forEach((edge) => routes.set(edge.id, edge));
  };
  gather(placed);
  const nodes: PlacedNode[] = [];
  const place = (node: SceneNode, depth: number): void => {
    const { x = 0, y = 0, width = 0, height = 0 } = shapes.get(node.id) ?? {};
    nodes.push({ node, depth, x, y, width, height });
    node.children.forEach((child) => {
      place(child, depth + 1);
    });
  };
  scene.nodes.forEach((node) => {
    place(node, 0);
  });
  const edges = scene.edges.flatMap((edge): PlacedEdge[] => {
    const route = routes.get(edge.id);
    const points = (route?.sections ?? []).flatMap((each) => [
      each.startPoint,
      ...(each.bendPoints ?? []),
      each.endPoint,
    ]);
    if (points.length === 0) {
      return [];
    }
    if (back.has(edge.id)) {
      points.reverse();
    }
    const [label] = route?.labels ?? [];
    const middle =
      label?.x === undefined || label.y === undefined
        ? undefined
        : { x: label.x + (label.width ?? 0) / 2, y: label.y + (label.height ?? 0) / 2 };
    return [{ edge, points, label: middle, bounds: around(points) }];
  });
  return { width: placed.width ?? 0, height: placed.height ?? 0, nodes, edges };
}

function around(points: readonly Point[]): Rect {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const x = Math.min(...xs);
  const y = Math.min(...ys);
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
}
