/** What is drawn of a graph while some boxes are closed: nodes with their texts, and one edge between any two, however many values pass. */

import { type Box, boxed, boxesOf, closedAtFirst, type Item, summary, sums } from "./boxes";
import type { Collective, End, KernelBefore, Parameter, Value } from "./messages";
import type { Model } from "./model";
import { count, duration, short, size, times } from "./words";

export interface SceneNode {
  readonly id: string;
  readonly kind: "kernel" | "closed" | "open" | "value";
  /** For colours: the kind of a kernel or of a box; `input` or `output`. */
  readonly tone: string;
  readonly title: string;
  /** What it says where it is too small for its texts: its name, and its figures, the most important one first. */
  readonly brief: { readonly name: string; readonly figures: readonly string[] };
  /** What the user wrote; the bytes of a closed box. */
  readonly sources: readonly string[];
  /** Why it ends; empty where there is nothing to say. */
  readonly foot: string;
  /** The kernels that it is or stands for. */
  readonly kernels: readonly number[];
  readonly children: readonly SceneNode[];
}

export interface SceneEdge {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly bytes: number;
  readonly label: string;
  /** The values that pass. */
  readonly values: readonly string[];
}

export interface Scene {
  readonly nodes: readonly SceneNode[];
  readonly edges: readonly SceneEdge[];
  /** What is left out of the picture, for people. */
  readonly omitted: string;
}

/** Expressions that a box shows. */
const SOURCES = 6;
/** Characters of one. */
export const LONGEST = 44;
/** An input that goes into more boxes than that is not drawn: its edges would cover everything else. */
const FAN = 10;
/** So many values are drawn one by one. */
const VALUES = 12;

const UNSAID = new Set(["output", "XLA's choice"]);

export class Boxes {
  readonly items: readonly Item[];
  readonly closed: Set<string>;
  /** The box whose inside alone is drawn; empty: everything is. */
  entered = "";

  /** @param before the boxes of the same function as it was: what people opened or closed stays so. */
  constructor(
    readonly model: Model,
    before?: Boxes,
  ) {
    this.items = boxed(model);
    this.closed = closedAtFirst(model, this.items);
    const known = new Set(before === undefined ? [] : boxesOf(before.items).map((box) => box.id));
    for (const { id } of boxesOf(this.items)) {
      if (known.has(id) && this.closed.has(id) !== before?.closed.has(id)) {
        this.toggle(id);
      }
    }
    this.entered = before !== undefined && this.around(before.entered).length > 0 ? before.entered : "";
  }

  /** Opens all. */
  open(): void {
    this.closed.clear();
  }

  /** Draws the inside of a box alone; empty: everything. Boxes in it that hold nothing but kernels stay as they are. */
  enter(id: string): void {
    this.entered = id;
    this.closed.delete(id);
  }

  /** Closes all. */
  close(): void {
    for (const { id } of boxesOf(this.items)) {
      this.closed.add(id);
    }
  }

  toggle(id: string): void {
    if (!this.closed.delete(id)) {
      this.closed.add(id);
    }
  }

  /** The boxes around a box or a kernel (`k3`), outermost first, itself included if it is a box. */
  around(id: string): readonly Box[] {
    const search = (items: readonly Item[]): readonly Box[] | undefined => {
      for (const item of items) {
        if ("kernel" in item) {
          if (id === `k${item.kernel}`) {
            return [];
          }
          continue;
        }
        const inside = item.box.id === id ? [] : search(item.box.items);
        if (inside !== undefined) {
          return [item.box, ...inside];
        }
      }
      return undefined;
    };
    return search(this.items) ?? [];
  }

  /** What is drawn: of all, or of the inside of the box that was entered. */
  scene(): Scene {
    const seen = new Map<number, string>();
    const entered = this.around(this.entered).at(-1);
    const nodes = this.nodes(entered?.items ?? this.items, seen);
    return edges(this.model, seen, nodes);
  }

  private nodes(items: readonly Item[], seen: Map<number, string>): readonly SceneNode[] {
    return items.map((item) => {
      if ("kernel" in item) {
        const node = kernelNode(this.model, item.kernel);
        seen.set(item.kernel, node.id);
        return node;
      }
      if (!this.closed.has(item.box.id)) {
        return boxNode(this.model, item.box, this.nodes(item.box.items, seen));
      }
      for (const kernel of item.box.kernels) {
        seen.set(kernel, item.box.id);
      }
      return boxNode(this.model, item.box, undefined);
    });
  }
}

function kernelNode(model: Model, index: number): SceneNode {
  const kernel = model.kernel(index);
  const all = model.sources(index).map((text) => short(text, LONGEST));
  const sources = all.length > SOURCES ? [...all.slice(0, SOURCES - 1), `… ${all.length - SOURCES + 1} more`] : all;
  const seconds = model.secondsOf(index);
  const time = seconds === null || kernel.launches === 0 ? "" : `${model.measured ? "" : "≈ "}${duration(seconds)}`;
  const { collective } = kernel;
  const unsaid = UNSAID.has(kernel.endsBecause);
  const reason = collective !== null ? moved(collective) : unsaid ? "" : `⊣ ${kernel.endsBecause}`;
  const title = `${index + 1}  ${short(titled(kernel), LONGEST)}${times(kernel)}`;
  return {
    id: `k${index}`,
    kind: "kernel",
    tone: kernel.kind,
    title,
    brief: { name: title, figures: time === "" ? [] : [time] },
    sources,
    foot: [reason, time].filter((part) => part !== "").join("  ·  "),
    kernels: [index],
    children: [],
  };
}

/** `⇄ all-reduce over data`; of other kernels what they are. */
export function titled(kernel: KernelBefore): string {
  return kernel.collective === null ? kernel.what : `⇄ ${kernel.what} ${kernel.collective.scope}`.trim();
}

function moved({ bytes, inserted }: Collective): string {
  return `${size(bytes)} on each device${inserted ? ", inserted" : ""}`;
}

function boxNode(model: Model, box: Box, children: readonly SceneNode[] | undefined): SceneNode {
  const { read, written, time } = sums(model, box);
  const figures = [summary(model, box), time].filter((part) => part !== "").join(" · ");
  const isClosed = children === undefined;
  return {
    id: box.id,
    kind: isClosed ? "closed" : "open",
    tone: box.kind,
    title: isClosed ? `▸ ${short(box.title, LONGEST)}` : `▾ ${short(box.title, LONGEST)}   ${figures}`,
    // Where there is little room, the numbers of kernels say more than the word.
    brief: { name: box.title.replace(/^kernels (?=\d)/, ""), figures: [time, count(box.kernels.length, "kernel"), read, written].filter((part) => part !== "") },
    sources: isClosed ? [`${read} · ${written}`] : [],
    foot: isClosed ? figures : "",
    kernels: box.kernels,
    children: children ?? [],
  };
}

function edges(model: Model, seen: ReadonlyMap<number, string>, nodes: readonly SceneNode[]): Scene {
  const { edges: all, parameters, outputs } = model.drawn;
  const inputs = joinedInputs(parameters);
  const name = ({ what, index }: End): string | undefined =>
    what === "kernel" ? seen.get(index) : what === "parameter" ? `parameter${inputs.first[index] ?? index}` : `${what}${index}`;
  const between = new Map<string, { source: string; target: string; values: Map<string, Value> }>();
  for (const edge of all) {
    const source = name(edge.source);
    const target = name(edge.target);
    if (source === undefined || target === undefined || source === target) {
      continue;
    }
    const key = `${source}>${target}`;
    const found = between.get(key) ?? { source, target, values: new Map<string, Value>() };
    // A value that several kernels of a closed box read passes once.
    found.values.set(`${edge.source.what}${edge.source.index} ${edge.value.text}`, edge.value);
    between.set(key, found);
  }
  const fans = new Map<string, number>();
  for (const { source, target } of between.values()) {
    fans.set(source, (fans.get(source) ?? 0) + 1);
    fans.set(target, (fans.get(target) ?? 0) + 1);
  }
  const values = (what: "parameter" | "output", from: readonly (Value & { readonly name?: string })[]): SceneNode[] => {
    const linked = from.flatMap((value, index) => {
      const id = `${what}${index}`;
      const fan = fans.get(id) ?? 0;
      return fan > 0 && fan <= FAN ? [valueNode(id, what, value)] : [];
    });
    return linked.length > VALUES ? [] : linked;
  };
  const given = values("parameter", inputs.values);
  const results = values("output", outputs);
  const drawn = new Set([...seen.values(), ...[...given, ...results].map((node) => node.id)]);
  const kept = [...between].flatMap(([id, { source, target, values: passing }]): SceneEdge[] => {
    if (!drawn.has(source) || !drawn.has(target)) {
      return [];
    }
    const list = [...passing.values()];
    const bytes = list.reduce((sum, value) => sum + value.bytes, 0);
    return [{ id, source, target, bytes, label: size(bytes), values: list.map((value) => value.text) }];
  });
  const hidden = [...fans.keys()].filter((id) => /^(parameter|output)/.test(id) && !drawn.has(id)).length;
  return {
    // In the order of the program: what goes back up is what a loop carries.
    nodes: [...given, ...nodes, ...results],
    edges: kept,
    omitted: hidden > 0 ? `${count(hidden, "input or output", "inputs and outputs")} not drawn` : "",
  };
}

interface Inputs {
  /** For each parameter the one that stands for it. */
  readonly first: readonly number[];
  /** By parameter, what stands there. */
  readonly values: readonly (Value & { readonly name?: string })[];
}

/** Many inputs are drawn by argument: all of `params` as one. */
function joinedInputs(parameters: readonly Parameter[]): Inputs {
  if (parameters.length <= VALUES || parameters.some(({ name }) => name === "")) {
    return { first: parameters.map((_, index) => index), values: parameters };
  }
  const argument = (name: string): string => /^[^.[]*/.exec(name)?.[0] ?? name;
  const all = new Map<string, number[]>();
  for (const [index, { name }] of parameters.entries()) {
    all.set(argument(name), [...(all.get(argument(name)) ?? []), index]);
  }
  const first = parameters.map(({ name }, index) => all.get(argument(name))?.[0] ?? index);
  const values = parameters.map((parameter) => {
    const joined = all.get(argument(parameter.name)) ?? [];
    const bytes = joined.reduce((sum, index) => sum + (parameters[index]?.bytes ?? 0), 0);
    const text = `${count(joined.length, "array")}, ${size(bytes)}`;
    return joined.length === 1 ? parameter : { name: argument(parameter.name), text, bytes };
  });
  return { first, values };
}

/** `params['w']: f32[8]`, or only its type where it has no name. */
export function named({ name = "", text }: { readonly name?: string; readonly text: string }): string {
  return name === "" ? text : `${name}: ${text}`;
}

function valueNode(id: string, what: "parameter" | "output", value: Value & { readonly name?: string }): SceneNode {
  const title = short(named(value), LONGEST);
  return {
    id,
    kind: "value",
    tone: what === "parameter" ? "input" : "output",
    title,
    brief: { name: title, figures: [] },
    sources: [],
    foot: "",
    kernels: [],
    children: [],
  };
}
