/**
 * The boxes that kernels stand in: loops, the arms of conditionals, and sections, which gather what stands in a row where there is
 * too much of it to be seen at once.
 */

import { launchesOf } from "./launches";
import type { Model } from "./model";
import { count, launchFigure } from "./words";

export type Item = { readonly kernel: number } | { readonly box: Box };

export interface Box {
  readonly id: string;
  readonly kind: "loop" | "branch" | "section";
  readonly title: string;
  readonly items: readonly Item[];
  /** The innermost branch that it is, or is in; -1: none. */
  readonly branch: number;
  /** All kernels in it, inner boxes included. */
  readonly kernels: readonly number[];
}

/** More items than that in one box make sections. */
const MOST = 60;
/** Graphs with more kernels than that begin with their boxes closed. */
const MANY = 80;

interface Open {
  readonly id: string;
  readonly items: ({ readonly kernel: number } | { readonly open: Open })[];
}

/** All kernels, in order, in the boxes that they are in. */
export function boxed(model: Model): readonly Item[] {
  const { kernels, loops, branches } = model.drawn;
  const root: Open = { id: "", items: [] };
  const opened = new Map<string, Open>();

  // Of a loop and a branch that something is in, one is in the other.
  const inner = (loop: number, branch: number): string => {
    if (branch < 0) {
      return loop < 0 ? "" : `loop${loop}`;
    }
    return loop < 0 || branches[branch]?.loop === loop ? `branch${branch}` : `loop${loop}`;
  };
  const around = (id: string): string => {
    const index = Number(id.replace(/\D+/, ""));
    const found = id.startsWith("loop") ? loops[index] : undefined;
    if (found !== undefined) {
      return inner(found.parent, found.branch);
    }
    const branch = branches[index];
    return branch === undefined ? "" : inner(branch.loop, branch.parent);
  };
  const open = (id: string): Open => {
    if (id === "") {
      return root;
    }
    let found = opened.get(id);
    if (found === undefined) {
      found = { id, items: [] };
      opened.set(id, found);
      open(around(id)).items.push({ open: found });
    }
    return found;
  };

  for (const [index, kernel] of kernels.entries()) {
    open(inner(kernel.loops.at(-1) ?? -1, kernel.branch)).items.push({ kernel: index });
  }
  return closed(model, root);
}

/** The boxes that are closed at first: none where all can be seen at once. */
export function closedAtFirst(model: Model, items: readonly Item[]): Set<string> {
  const many = model.drawn.kernels.length > MANY;
  return new Set(boxesOf(items).flatMap((box) => (many || box.kind === "section" ? [box.id] : [])));
}

/** All boxes, the outer ones first. */
export function boxesOf(items: readonly Item[]): readonly Box[] {
  return items.flatMap((item) => ("box" in item ? [item.box, ...boxesOf(item.box.items)] : []));
}

function closed(model: Model, open: Open): readonly Item[] {
  const items = open.items.map((item): Item => ("kernel" in item ? item : { box: boxOf(model, item.open) }));
  return items.length > MOST ? sections(model, open.id, items) : items;
}

function boxOf(model: Model, open: Open): Box {
  const items = closed(model, open);
  const kind = open.id.startsWith("loop") ? "loop" : "branch";
  const branch = branchOf(model, open.id);
  return { id: open.id, kind, title: title(model, open.id), items, branch, kernels: kernelsIn(items) };
}

function branchOf(model: Model, id: string): number {
  const index = Number(id.replace(/\D+/, ""));
  return id.startsWith("loop") ? (model.drawn.loops[index]?.branch ?? -1) : id === "" ? -1 : index;
}

function title(model: Model, id: string): string {
  const index = Number(id.replace(/\D+/, ""));
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
      box: { id: `${id}section${start}`, kind: "section", title: section(model, kernels), items: inside, branch, kernels },
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
