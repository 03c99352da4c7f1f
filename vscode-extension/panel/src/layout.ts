/**
 * Where everything of a scene stands: ELK's layered layout, in a worker that is ended when its answer is no longer wanted; columns where
 * a scene is large, and until ELK is done.
 */

import type { ELK, ElkExtendedEdge, ElkNode } from "elkjs/lib/elk-api";

import { blocks } from "./blocks";
import { around, type Metrics, PADDING, type Point, type Rect, sizeOf, widthOf } from "./sizes";
import type { Scene, SceneEdge, SceneNode } from "./scene";

export interface PlacedNode extends Rect {
  readonly node: SceneNode;
  /** How many boxes it is in. */
  readonly depth: number;
  /** The height of an open box's title. */
  readonly head: number;
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
  /** Whether nodes stand in columns in the order of the program, so that edges are drawn only for what is chosen. */
  readonly isPacked: boolean;
}

const HEAD = 34;
/** Labels of more edges would take longer to place than to read. */
const LABELLED = 400;
/** More nodes than that are packed into columns: in layers they are a drawing that nobody can follow, after seconds. */
const LAYERED = 90;
/** Milliseconds after which what is not laid out yet is seen in columns. */
const SOON = 400;

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
   * @param early is told of a layout in columns when that in layers takes long.
   * @throws Superseded when another scene was to be laid out before this one was done.
   */
  async layout(scene: Scene, early?: (layout: Layout) => void): Promise<Layout> {
    this.giveUp?.();
    if (nodesIn(scene.nodes) > LAYERED) {
      return blocks(scene, this.metrics);
    }
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
    const late = setTimeout(() => early?.(blocks(scene, this.metrics)), SOON);
    try {
      const placed = await Promise.race([elk.layout(this.graph(scene, labelled, back)), given]);
      return read(scene, placed, back);
    } finally {
      clearTimeout(late);
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
          "elk.nodeSize.minimum": `(${widthOf([node.title], this.metrics)}, ${HEAD})`,
        },
        children: node.children.map((child) => this.node(child, layered)),
      };
    }
    return { id: node.id, ...sizeOf(node, this.metrics) };
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
}

function nodesIn(nodes: readonly SceneNode[]): number {
  return nodes.reduce((sum, node) => sum + 1 + nodesIn(node.children), 0);
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
    nodes.push({ node, depth, x, y, width, height, head: HEAD });
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
  return { width: placed.width ?? 0, height: placed.height ?? 0, nodes, edges, isPacked: false };
}
