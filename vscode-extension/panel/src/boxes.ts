/**
 * The boxes that kernels stand in: the calls that created them, loops, the arms of conditionals, and sections, which gather what stands
 * in a row where there is too much of it to be seen at once.
 */

import { figuresOf, launchesOf } from "./launches";
import type { Place } from "./messages";
import type { Model } from "./model";
import { count, duration, launchFigure, size } from "./words";

export type Item = { readonly kernel: number } | { readonly box: Box };

export interface Box {
  readonly id: string;
  readonly kind: "group" | "loop" | "branch" | "section";
  readonly title: string;
  /** The call of a group. */
  readonly place: Place | null;
  readonly items: readonly Item[];
  /** The innermost branch that it is, or is in; -1: none. */
  readonly branch: number;
  /** All kernels in it, inner boxes included. */
  readonly kernels: readonly number[];
}

/** More items than that in one box make sections. */
const MOST = 60;
/** Graphs with more kernels than that begin with most of their boxes closed. */
const MANY = 80;
/** So many nodes are seen at first of such a graph. */
const FIRST = 40;
/** Fewer kernels than that are understood without the calls that created them. */
const GROUPED = 30;

interface Open {
  readonly id: string;
  readonly items: ({ readonly kernel: number } | { readonly open: Open })[];
}

/** All kernels, in order, in the boxes that they are in. */
export function boxed(model: Model): readonly Item[] {
  const { kernels } = model.drawn;
  const control = kernels.map((_, index) => controlAround(model, index));
  const groups = kernels.map((_, index) => (kernels.length < GROUPED ? [] : model.groupsOf(index)));
  const shared = sharedGroups(control, groups);
  const root: Open = { id: "", items: [] };
  const opened = new Map<string, Open>();
  for (const index of kernels.keys()) {
    let inside = root;
    for (const id of pathOf(control[index] ?? [], groups[index] ?? [], shared)) {
      let next = opened.get(id);
      if (next === undefined) {
        next = { id, items: [] };
        opened.set(id, next);
        inside.items.push({ open: next });
      }
      inside = next;
    }
    inside.items.push({ kernel: index });
  }
  return closed(model, root);
}

/** The loops and arms around a kernel, outermost first. */
function controlAround(model: Model, index: number): readonly string[] {
  const { loops, branches } = model.drawn;
  const kernel = model.kernel(index);
  // Of a loop and a branch that something is in, one is in the other.
  const inner = (loop: number, branch: number): string => {
    if (branch < 0) {
      return loop < 0 ? "" : `loop${loop}`;
    }
    return loop < 0 || branches[branch]?.loop === loop ? `branch${branch}` : `loop${loop}`;
  };
  const around: string[] = [];
  let id = inner(kernel.loops.at(-1) ?? -1, kernel.branch);
  while (id !== "") {
    around.unshift(id);
    const loop = id.startsWith("loop") ? loops[numberWithin(id)] : undefined;
    const branch = id.startsWith("loop") ? undefined : branches[numberWithin(id)];
    id = loop !== undefined ? inner(loop.parent, loop.branch) : branch === undefined ? "" : inner(branch.loop, branch.parent);
  }
  return around;
}

/** How many of the outermost groups all kernels of a loop or an arm are in: these are around it, the others in it. */
function sharedGroups(control: readonly (readonly string[])[], groups: readonly (readonly number[])[]): ReadonlyMap<string, number> {
  const first = new Map<string, readonly number[]>();
  const shared = new Map<string, number>();
  for (const [index, around] of control.entries()) {
    const own = groups[index] ?? [];
    for (const id of around) {
      const other = first.get(id) ?? own;
      first.set(id, other);
      const differs = own.findIndex((group, at) => other[at] !== group);
      const common = Math.min(other.length, differs < 0 ? own.length : differs);
      shared.set(id, Math.min(shared.get(id) ?? common, common));
    }
  }
  return shared;
}

function pathOf(control: readonly string[], groups: readonly number[], shared: ReadonlyMap<string, number>): readonly string[] {
  const path: string[] = [];
  let at = 0;
  let scope = "";
  const enter = (depth: number): void => {
    for (; at < depth; at++) {
      path.push(`${scope}group${groups[at] ?? 0}`);
    }
  };
  for (const id of control) {
    enter(shared.get(id) ?? 0);
    path.push(id);
    scope = id;
  }
  enter(groups.length);
  return path;
}

/** The boxes that are closed at first: none where all can be seen at once; else those that fewer kernels than boxes are in stay closed. */
export function closedAtFirst(model: Model, items: readonly Item[]): Set<string> {
  const boxes = boxesOf(items);
  if (model.drawn.kernels.length <= MANY) {
    return new Set(boxes.flatMap((box) => (box.kind === "section" ? [box.id] : [])));
  }
  const found = new Set(boxes.map((box) => box.id));
  let seen = items.length;
  let level = boxesIn(items);
  while (level.length > 0) {
    const next: Box[] = [];
    for (const box of [...level].sort((a, b) => b.kernels.length - a.kernels.length)) {
      const inner = boxesIn(box.items);
      if (inner.length > 0 && seen + box.items.length <= FIRST) {
        found.delete(box.id);
        seen += box.items.length;
        next.push(...inner);
      }
    }
    level = next;
  }
  return found;
}

function boxesIn(items: readonly Item[]): readonly Box[] {
  return items.flatMap((item) => ("box" in item ? [item.box] : []));
}

/** All boxes, the outer ones first. */
export function boxesOf(items: readonly Item[]): readonly Box[] {
  return items.flatMap((item) => ("box" in item ? [item.box, ...boxesOf(item.box.items)] : []));
}

function closed(model: Model, open: Open): readonly Item[] {
  const items = open.items.map((item): Item => {
    if ("kernel" in item) {
      return item;
    }
    const [only, ...others] = item.open.items;
    // A call that made a single kernel is named by its expression.
    const isPlain = kindOf(item.open.id) === "group" && others.length === 0 && only !== undefined && "kernel" in only;
    return isPlain ? only : { box: boxOf(model, item.open) };
  });
  return items.length > MOST ? sections(model, open.id, items) : items;
}

function boxOf(model: Model, open: Open): Box {
  const items = closed(model, open);
  const kernels = kernelsIn(items);
  const kind = kindOf(open.id);
  const group = kind === "group" ? model.drawn.groups[numberWithin(open.id)] : undefined;
  const place = group?.place ?? null;
  return { id: open.id, kind, title: title(model, open.id), place, items, branch: branchOf(model, open.id), kernels };
}

/** A group in a loop has that in its name: `loop0group3`. */
function kindOf(id: string): "group" | "loop" | "branch" {
  return id.includes("group") ? "group" : id.startsWith("loop") ? "loop" : "branch";
}

/** The last number of a name. */
function numberWithin(id: string): number {
  return Number(/\d+$/.exec(id)?.[0] ?? -1);
}

/** The innermost branch that a box is, or is in. */
function branchOf(model: Model, id: string): number {
  const control = id.replace(/group\d+$/, "").replace(/section\d+$/, "");
  const index = numberWithin(control);
  return control.startsWith("loop") ? (model.drawn.loops[index]?.branch ?? -1) : control === "" ? -1 : index;
}

function title(model: Model, id: string): string {
  const index = numberWithin(id);
  if (kindOf(id) === "group") {
    return model.drawn.groups[index]?.title ?? "";
  }
  const loop = id.startsWith("loop") ? model.drawn.loops[index] : undefined;
  if (loop !== undefined) {
    const what = model.equation(loop.equation)?.primitive ?? "loop";
    return `${what} × ${loop.trips ?? "?"}${loop.waits ? ", each iteration waits for the host" : ""}`;
  }
  const branch = model.drawn.branches[index];
  return branch === undefined ? "" : `branch ${branch.arm + 1} of ${branch.arms}`;
}

/** About as many sections as there is in each. */
function sections(model: Model, id: string, items: readonly Item[]): readonly Item[] {
  const each = Math.min(MOST, Math.max(20, Math.ceil(Math.sqrt(items.length))));
  const branch = branchOf(model, id);
  const found: Item[] = [];
  for (let start = 0; start < items.length; start += each) {
    const inside = items.slice(start, start + each);
    const kernels = kernelsIn(inside);
    found.push({
      box: { id: `${id}section${start}`, kind: "section", title: section(model, kernels), place: null, items: inside, branch, kernels },
    });
  }
  return found;
}

function section(model: Model, kernels: readonly number[]): string {
  const first = Math.min(...kernels) + 1;
  const last = Math.max(...kernels) + 1;
  const lines = kernels.flatMap((index) => model.linesOf(index));
  const from = Math.min(...lines);
  const to = Math.max(...lines);
  const where = lines.length === 0 ? "" : from === to ? ` · line ${from}` : ` · lines ${from}–${to}`;
  if (kernels.length <= last - first) {
    return `${count(kernels.length, "kernel")}${where}`;
  }
  return first === last ? `kernel ${first}${where}` : `kernels ${first}–${last}${where}`;
}

function kernelsIn(items: readonly Item[]): readonly number[] {
  return items.flatMap((item) => ("kernel" in item ? [item.kernel] : item.box.kernels));
}

/** What a closed box says of its inside: `3 kernels · 3–7 launches`; no launches where nothing is known of them. */
export function summary(model: Model, box: Box): string {
  const kernels = count(box.kernels.length, "kernel");
  const figure = launchFigure(launchesOf(model.drawn, box.kernels, box.branch));
  return figure === "≥ 0" ? kernels : `${kernels} · ${figure} ${figure === "1" ? "launch" : "launches"}`;
}

/** Bytes and time of the kernels in a box, as far as they are known: `read 3 MiB`, `written 1 MiB`, `≈ 12 µs`. */
export function sums(model: Model, box: Box): { readonly read: string; readonly written: string; readonly time: string } {
  const { read, written, seconds, bytesSign, timeSign } = figuresOf(model.drawn, box.kernels, box.branch);
  const time = seconds === null ? "" : `${timeSign}${duration(seconds)}`;
  return { read: `read ${bytesSign}${size(read)}`, written: `written ${bytesSign}${size(written)}`, time };
}
