/**
 * The graph on the screen: of a large one only what is seen has elements. Moved by pointer, wheel and keys.
 *
 * The drawing is larger than the view by a margin on each side, and within it a movement only scrolls, for which browsers paint nothing and
 * (other than for a transform) build no layers. Beyond it the elements of what is seen are put in, and the drawing begins from there.
 */

import { Camera, overlap, suffices } from "./camera";
import { h, on, s, set } from "./dom";
import { defs, edgeElement, heavyBytes, nodeElement } from "./drawing";
import { labels } from "./labels";
import { type Layout, type PlacedEdge, type PlacedNode, Superseded } from "./layout";
import { saved } from "./saved";
import type { Scene } from "./scene";
import type { Point, Rect } from "./sizes";

export interface GraphEvents {
  /** A kernel, or the kernels of a box, were chosen; `focus`: the source is to be gone to. */
  chosen(kernels: readonly number[], focus: boolean): void;
  toggled(box: string): void;
  /** The inside of a box is to be drawn alone. */
  entered(box: string): void;
  /** A node is the one that keys act on. */
  activated(id: string): void;
  busy(busy: boolean): void;
}

/** Pixels of the drawing beyond the view on each side: it is painted again after so much movement. `.graph` of the style has them too. */
const MARGIN = 300;
/** Pixels that a pointer may move in a click. */
const STILL = 4;
/** Below that, texts cannot be read as they are drawn: labels of their own size stand in for them. */
const SMALL = 0.58;

export class GraphView {
  readonly element: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly world = s("g");
  private readonly boxes = s("g");
  private readonly edges = s("g");
  private readonly nodes = s("g");
  private readonly labels = s("g", { class: "labels" });
  private readonly camera = new Camera();
  /** What is drawn is another function's until the layout is there: it stays where it is, and then the view begins anew. */
  private fresh = false;
  private readonly drawn = new Map<string, SVGGElement>();
  private layout: Layout | undefined;
  private byId = new Map<string, PlacedNode>();
  private heavy = Infinity;
  private active: string | undefined;
  /** The scale that labels are drawn for. */
  private labelled = 0;
  /** The part of the drawing that has its elements. */
  private filled: Rect | undefined;
  /** Where the drawing was painted. */
  private painted: Point & { readonly scale: number } = { x: NaN, y: NaN, scale: NaN };
  /** Where the view was scrolled to. */
  private scrolled: Point = { x: 0, y: 0 };
  private lit: ReadonlySet<number> = new Set();
  private chosen: ReadonlySet<number> = new Set();
  private added: ReadonlySet<number> = new Set();
  private awaited = false;
  private sized = false;

  constructor(
    private readonly layouter: { layout(scene: Scene, early?: (layout: Layout) => void): Promise<Layout> },
    private readonly line: number,
    private readonly events: GraphEvents,
    private readonly ids = "",
  ) {
    this.svg = s("svg", { class: "graph", role: "presentation" });
    this.world.append(this.boxes, this.edges, this.nodes, this.labels);
    this.svg.append(defs(), this.world);
    this.element = h("div", {
      class: "graph-area",
      tabindex: 0,
      role: "listbox",
      "aria-label": "Kernel graph. Arrow keys follow the data flow, Enter goes to the source or into a box, Backspace out of it, Space expands and collapses boxes, plus and minus zoom, 0 fits.",
    });
    this.element.append(this.svg);
    this.listen();
  }

  /** Draws a scene; `fresh`: it is another function's, or is to be seen as a whole, so that the view begins anew. */
  async show(scene: Scene, fresh: boolean): Promise<void> {
    this.events.busy(true);
    this.fresh ||= fresh;
    let layout: Layout;
    try {
      layout = await this.layouter.layout(scene, (early) => {
        const begins = this.fresh;
        this.adopt(early);
        this.fresh = begins;
      });
    } catch (error) {
      if (error instanceof Superseded) {
        return;
      }
      this.events.busy(false);
      throw error;
    }
    this.adopt(layout);
    this.events.busy(false);
  }

  private adopt(layout: Layout): void {
    const anchor = this.active === undefined ? undefined : this.byId.get(this.active);
    this.layout = layout;
    this.byId = new Map(layout.nodes.map((placed) => [placed.node.id, placed]));
    this.heavy = heavyBytes(layout.edges);
    this.clear();
    this.measure();
    if (this.fresh || !this.sized) {
      this.fresh = false;
      this.active = undefined;
      this.begin(layout);
      this.sized = this.camera.width > 1;
      this.reveal(this.lit);
    } else if (anchor !== undefined && this.active !== undefined) {
      this.keepInPlace(anchor, this.byId.get(this.active));
    }
    const seen = this.camera.seen();
    if (!layout.nodes.some((placed) => overlap(seen, placed))) {
      this.begin(layout);
    }
    this.draw();
  }

  /** What is packed is seen as a whole, as labels of their own size are read there; else the beginning at least. */
  private begin({ width, height, isPacked }: Layout): void {
    if (isPacked) {
      this.camera.fit(width, height);
    } else {
      this.camera.begin(width, height);
    }
  }

  /** Nothing to draw. */
  empty(): void {
    this.layout = undefined;
    this.byId.clear();
    this.active = undefined;
    this.clear();
    this.draw();
  }

  /** The kernels of the expression at the cursor. */
  light(kernels: readonly number[]): void {
    this.lit = new Set(kernels);
    this.mark();
    this.reveal(this.lit);
  }

  choose(kernels: readonly number[]): void {
    this.chosen = new Set(kernels);
    if (this.layout?.isPacked === true) {
      this.filled = undefined;
    }
    this.mark();
    this.reveal(this.chosen);
  }

  /** Those that are new since the file was saved. */
  markAdded(kernels: ReadonlySet<number>): void {
    this.added = kernels;
    this.mark();
  }

  fit(): void {
    if (this.layout !== undefined) {
      this.measure();
      this.camera.fit(this.layout.width, this.layout.height);
      this.draw();
    }
  }

  /** @param at a point of the view, its middle by default. */
  zoom(factor: number, at?: Point): void {
    this.camera.zoom(factor, at);
    this.stay();
    this.draw();
  }

  /** Goes to the nearest node where none is seen. */
  private stay(): void {
    const seen = this.camera.seen();
    const [x, y] = [seen.x + seen.width / 2, seen.y + seen.height / 2];
    let nearest: { placed: PlacedNode; distance: number } | undefined;
    for (const placed of this.layout?.nodes ?? []) {
      if (placed.node.kind === "open") {
        continue;
      }
      if (overlap(seen, placed)) {
        return;
      }
      const distance = Math.hypot(placed.x + placed.width / 2 - x, placed.y + placed.height / 2 - y);
      if (nearest === undefined || distance < nearest.distance) {
        nearest = { placed, distance };
      }
    }
    if (nearest !== undefined) {
      this.camera.center(nearest.placed);
    }
  }

  /** The whole drawing as a file. */
  file(): string | undefined {
    if (this.layout === undefined) {
      return undefined;
    }
    const style = getComputedStyle(document.documentElement);
    return saved(this.layout, this.line, (name) => style.getPropertyValue(name));
  }

  /** Whether texts cannot be read as they are drawn. */
  private get isSmall(): boolean {
    return this.camera.scale < SMALL;
  }

  /** How many elements there are just now. */
  get elements(): number {
    return this.drawn.size;
  }

  private clear(): void {
    this.drawn.forEach((element) => {
      element.remove();
    });
    this.drawn.clear();
    this.filled = undefined;
  }

  private measure(): void {
    this.camera.width = Math.max(1, this.element.clientWidth);
    this.camera.height = Math.max(1, this.element.clientHeight);
  }

  /** A box that was opened or closed stays where it was on the screen. */
  private keepInPlace(before: PlacedNode, after: PlacedNode | undefined): void {
    if (after !== undefined) {
      const { scale } = this.camera;
      this.camera.pan((before.x - after.x) * scale, (before.y - after.y) * scale);
    }
  }

  private draw(): void {
    if (this.layout !== undefined && this.camera.width > 1) {
      this.camera.hold(this.layout.width, this.layout.height);
    }
    if (!this.awaited) {
      this.awaited = true;
      requestAnimationFrame(() => {
        this.awaited = false;
        this.drawNow();
      });
    }
  }

  private drawNow(): void {
    const { x, y, scale } = this.camera;
    if (this.svg.classList.toggle("small", this.isSmall) !== this.painted.scale < SMALL) {
      // Nodes seen from afar have no elements of their texts.
      this.clear();
    }
    this.svg.classList.toggle("packed", this.layout?.isPacked === true);
    const enough = this.filled !== undefined && suffices(this.filled, this.camera.seen());
    if (!enough) {
      this.fill();
    }
    const isNear = (here: number, there: number): boolean => Math.abs(here - there) <= MARGIN;
    if (!enough || scale !== this.painted.scale || !isNear(x, this.painted.x) || !isNear(y, this.painted.y)) {
      this.painted = { x, y, scale };
      this.world.setAttribute("transform", `translate(${x + MARGIN},${y + MARGIN}) scale(${scale})`);
    }
    this.element.scrollTo(MARGIN + this.painted.x - x, MARGIN + this.painted.y - y);
    this.scrolled = { x: this.element.scrollLeft, y: this.element.scrollTop };
    if (!enough || scale !== this.labelled) {
      this.labelled = scale;
      const nodes = this.isSmall ? (this.layout?.nodes ?? []) : [];
      this.labels.replaceChildren(...labels(nodes, { isDrawn: (id) => this.drawn.has(id), marks: (kernels) => this.marksOf(kernels) }, scale));
    }
  }

  /** Has the elements of what is seen, and of no more. */
  private fill(): void {
    const seen = (this.filled = this.camera.seen(MARGIN));
    for (const placed of this.layout?.nodes ?? []) {
      const { id, kind } = placed.node;
      // Open boxes are few, and what they hold may be seen while they are not.
      const wanted = kind === "open" || id === this.active || overlap(seen, placed);
      this.put(id, wanted, kind === "open" ? this.boxes : this.nodes, () => this.made(placed));
    }
    const all = this.layout?.isPacked !== true;
    for (const placed of this.layout?.edges ?? []) {
      const make = (): SVGGElement => this.madeEdge(placed);
      this.put(placed.edge.id, (all || this.isNear(placed)) && overlap(seen, placed.bounds), this.edges, make);
    }
  }

  private put(id: string, wanted: boolean, layer: SVGGElement, make: () => SVGGElement): void {
    const there = this.drawn.get(id);
    if (wanted && there === undefined) {
      const element = make();
      this.drawn.set(id, element);
      layer.append(element);
    } else if (!wanted && there !== undefined) {
      there.remove();
      this.drawn.delete(id);
    }
  }

  private made(placed: PlacedNode): SVGGElement {
    const element = nodeElement(placed, this.isSmall ? undefined : this.line);
    const { id, title, sources, foot } = placed.node;
    element.setAttribute("id", `${this.ids}node-${id}`);
    element.setAttribute("role", "option");
    set(element, "aria-label", [title, ...sources, foot].filter((part) => part !== "").join(", "));
    this.markOne(element, placed);
    return element;
  }

  private madeEdge(placed: PlacedEdge): SVGGElement {
    const element = edgeElement(placed, placed.edge.bytes >= this.heavy, !this.isSmall);
    this.markEdge(element, placed);
    return element;
  }

  private mark(): void {
    // Labels over boxes are marked too.
    this.labelled = 0;
    for (const placed of this.layout?.nodes ?? []) {
      const element = this.drawn.get(placed.node.id);
      if (element !== undefined) {
        this.markOne(element, placed);
      }
    }
    for (const placed of this.layout?.edges ?? []) {
      const element = this.drawn.get(placed.edge.id);
      if (element !== undefined) {
        this.markEdge(element, placed);
      }
    }
  }

  private markOne(element: SVGGElement, { node }: PlacedNode): void {
    const marks = node.kind === "open" ? [] : this.marksOf(node.kernels);
    for (const mark of ["lit", "chosen", "added"]) {
      element.classList.toggle(mark, marks.includes(mark));
    }
    element.classList.toggle("active", node.id === this.active);
    element.setAttribute("aria-selected", String(marks.includes("chosen")));
  }

  /** What some of these kernels are: at the cursor, chosen, or new since the last save. */
  private marksOf(kernels: readonly number[]): readonly string[] {
    const some = (marked: ReadonlySet<number>): boolean => kernels.some((each) => marked.has(each));
    return [...(some(this.lit) ? ["lit"] : []), ...(some(this.chosen) ? ["chosen"] : []), ...(some(this.added) ? ["added"] : [])];
  }

  private markEdge(element: SVGGElement, placed: PlacedEdge): void {
    element.classList.toggle("near", this.isNear(placed));
  }

  /** Whether an edge begins or ends at what is chosen. */
  private isNear({ edge }: PlacedEdge): boolean {
    const ends = [this.byId.get(edge.source), this.byId.get(edge.target)];
    return ends.some((end) => end?.node.kind !== "open" && end?.node.kernels.some((each) => this.chosen.has(each)) === true);
  }

  /** Moves to the first of some kernels when none of them is seen. */
  private reveal(kernels: ReadonlySet<number>): void {
    this.measure();
    const placed = (this.layout?.nodes ?? []).filter(
      ({ node }) => node.kind !== "open" && node.kernels.some((each) => kernels.has(each)),
    );
    const seen = this.camera.seen();
    const [first] = placed;
    if (!this.fresh && first !== undefined && !placed.some((each) => overlap(seen, each))) {
      this.camera.center(first);
    }
    this.draw();
  }

  private activate(id: string): void {
    this.active = id;
    const placed = this.byId.get(id);
    if (placed !== undefined && !overlap(this.camera.seen(-20), placed)) {
      this.camera.center(placed);
    }
    this.element.setAttribute("aria-activedescendant", `${this.ids}node-${id}`);
    this.events.activated(id);
    this.mark();
    this.draw();
  }

  private act(id: string, enters: boolean): void {
    const kind = this.byId.get(id)?.node.kind;
    if (enters && (kind === "open" || kind === "closed")) {
      this.events.entered(id);
    } else {
      this.press(id, enters);
    }
  }

  private press(id: string, focus: boolean): void {
    const placed = this.byId.get(id);
    if (placed === undefined) {
      return;
    }
    this.activate(id);
    if (placed.node.kind === "kernel") {
      this.events.chosen(placed.node.kernels, focus);
    } else if (placed.node.kind !== "value") {
      this.events.toggled(id);
    }
  }

  private listen(): void {
    let from: { x: number; y: number; moved: boolean } | undefined;
    on(this.element, "pointerdown", (event) => {
      if (event.button === 0) {
        from = { x: event.clientX, y: event.clientY, moved: false };
      }
    });
    on(this.element, "pointermove", (event) => {
      if (from === undefined) {
        return;
      }
      const x = event.clientX - from.x;
      const y = event.clientY - from.y;
      if (from.moved || Math.hypot(x, y) > STILL) {
        if (!from.moved) {
          this.element.setPointerCapture(event.pointerId);
        }
        from = { x: event.clientX, y: event.clientY, moved: true };
        this.camera.pan(x, y);
        this.draw();
      }
    });
    on(this.element, "pointercancel", () => {
      from = undefined;
    });
    on(this.element, "pointerup", (event) => {
      const still = from?.moved === false;
      from = undefined;
      const target = event.target instanceof Element ? event.target.closest("[data-id]") : null;
      const id = target?.getAttribute("data-id");
      if (still && typeof id === "string") {
        this.press(id, event.ctrlKey || event.metaKey);
      }
    });
    on(this.element, "dblclick", (event) => {
      const target = event.target instanceof Element ? event.target.closest(".node") : null;
      const id = target?.getAttribute("data-id");
      const kind = typeof id === "string" ? this.byId.get(id)?.node.kind : undefined;
      if (typeof id === "string" && kind === "kernel") {
        this.press(id, true);
      } else if (typeof id === "string" && (kind === "open" || kind === "closed")) {
        this.events.entered(id);
      }
    });
    this.element.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (event.ctrlKey || event.metaKey) {
          const box = this.element.getBoundingClientRect();
          this.zoom(Math.exp(-event.deltaY / 200), { x: event.clientX - box.left, y: event.clientY - box.top });
        } else {
          this.camera.pan(-event.deltaX, -event.deltaY);
        }
        this.draw();
      },
      { passive: false },
    );
    // By the browser's own keys and gestures.
    on(this.element, "scroll", () => {
      const { scrollLeft, scrollTop } = this.element;
      if (!this.awaited && (scrollLeft !== this.scrolled.x || scrollTop !== this.scrolled.y)) {
        this.camera.pan(this.scrolled.x - scrollLeft, this.scrolled.y - scrollTop);
        this.draw();
      }
    });
    on(this.element, "keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) {
        event.preventDefault();
      }
    });
    if (typeof ResizeObserver !== "undefined") {
      new ResizeObserver(() => {
        this.measure();
        if (!this.sized && this.layout !== undefined && this.camera.width > 1) {
          this.begin(this.layout);
          this.sized = true;
        }
        this.draw();
      }).observe(this.element);
    }
  }

  private key(key: string): boolean {
    switch (key) {
      case "ArrowDown":
      case "ArrowUp":
      case "ArrowLeft":
      case "ArrowRight":
        this.walk(key);
        return true;
      case "Enter":
      case " ":
        if (this.active !== undefined) {
          this.act(this.active, key === "Enter");
        }
        return true;
      case "Backspace":
        this.events.entered("");
        return true;
      case "+":
      case "=":
        this.zoom(1.25);
        return true;
      case "-":
        this.zoom(0.8);
        return true;
      case "0":
      case "f":
        this.fit();
        return true;
      default:
        return false;
    }
  }

  /** To the nearest node in a direction; what is linked with this one first. */
  private walk(key: string): void {
    const nodes = this.layout?.nodes ?? [];
    const here = this.active === undefined ? undefined : this.byId.get(this.active);
    if (here === undefined) {
      const first = nodes.find(({ node }) => node.kind === "kernel" || node.kind === "closed");
      if (first !== undefined) {
        this.activate(first.node.id);
      }
      return;
    }
    const linked = new Set(
      (this.layout?.edges ?? []).flatMap(({ edge }) => {
        const down = key === "ArrowDown" && edge.source === this.active;
        const up = key === "ArrowUp" && edge.target === this.active;
        return down ? [edge.target] : up ? [edge.source] : [];
      }),
    );
    const [x, y] = middle(here);
    let best: { id: string; distance: number } | undefined;
    for (const placed of nodes) {
      const [u, v] = middle(placed);
      const ahead = key === "ArrowDown" ? v - y : key === "ArrowUp" ? y - v : key === "ArrowLeft" ? x - u : u - x;
      const aside = key === "ArrowDown" || key === "ArrowUp" ? Math.abs(u - x) : Math.abs(v - y);
      if (ahead <= 1 || placed.node.id === this.active) {
        continue;
      }
      const distance = (ahead + 3 * aside) * (linked.has(placed.node.id) ? 0.2 : 1);
      if (best === undefined || distance < best.distance) {
        best = { id: placed.node.id, distance };
      }
    }
    if (best !== undefined) {
      this.activate(best.id);
    }
  }
}

/** Of an open box the middle of its title: its inside has nodes of its own. */
function middle({ node, x, y, width, height }: PlacedNode): readonly [number, number] {
  return [x + width / 2, node.kind === "open" ? y + 12 : y + height / 2];
}
