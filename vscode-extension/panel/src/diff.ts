/** What became of a function's kernels since its file was saved. */

import type { KernelBefore } from "./messages";

export interface Difference {
  /** Indexes of those that were not there. */
  readonly added: ReadonlySet<number>;
  /** Those that are gone. */
  readonly gone: readonly KernelBefore[];
}

/**
 * Kernels are the same when they do the same kind of work on arrays of the same types; what stands in both, in the same order, is
 * taken to be what was kept (the longest common subsequence).
 */
export function difference(before: readonly KernelBefore[], now: readonly KernelBefore[]): Difference {
  const was = before.map(key);
  const is = now.map(key);
  let start = 0;
  while (start < was.length && start < is.length && was[start] === is[start]) {
    start++;
  }
  let end = 0;
  while (end < was.length - start && end < is.length - start && was.at(-1 - end) === is.at(-1 - end)) {
    end++;
  }
  const old = was.slice(start, was.length - end);
  const fresh = is.slice(start, is.length - end);
  const kept = common(old, fresh);
  const added = fresh.flatMap((_, index) => (kept.fresh.has(index) ? [] : [start + index]));
  const gone = before.slice(start, before.length - end).filter((_, index) => !kept.old.has(index));
  return { added: new Set(added), gone };
}

function key({ what, inputs, outputs, launches }: KernelBefore): string {
  const types = (values: readonly { readonly text: string }[]): string[] => values.map((value) => value.text).sort();
  return JSON.stringify([what, launches, types(inputs), types(outputs)]);
}

/** More pairs than that would take too much memory: then order does not count. */
const MOST = 16_000_000;

interface Kept {
  readonly old: Set<number>;
  readonly fresh: Set<number>;
}

function common(old: readonly string[], fresh: readonly string[]): Kept {
  return old.length * fresh.length > MOST ? equal(old, fresh) : inOrder(old, fresh);
}

/** Those that there are equals of, wherever they stand. */
function equal(old: readonly string[], fresh: readonly string[]): Kept {
  const places = new Map<string, number[]>();
  for (const [index, each] of old.entries()) {
    const known = places.get(each);
    if (known === undefined) {
      places.set(each, [index]);
    } else {
      known.push(index);
    }
  }
  const found: Kept = { old: new Set(), fresh: new Set() };
  for (const [index, each] of fresh.entries()) {
    const place = places.get(each)?.shift();
    if (place !== undefined) {
      found.old.add(place);
      found.fresh.add(index);
    }
  }
  return found;
}

function inOrder(old: readonly string[], fresh: readonly string[]): Kept {
  const width = fresh.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      lengths[i * width + j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const found: Kept = { old: new Set(), fresh: new Set() };
  let i = 0;
  let j = 0;
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) {
      found.old.add(i++);
      found.fresh.add(j++);
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      i++;
    } else {
      j++;
    }
  }
  return found;
}
