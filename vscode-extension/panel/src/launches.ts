/** Sums over some kernels in one run of the program, of each conditional one arm. */

import type { Branch, Drawn, Kernel, Launches, Value } from "./messages";

/**
 * As the server counts them for the whole program (`Graph.launch_count` in `jaxsight/wire/kernel_graph.py`).
 *
 * @param within the branch that all of them are in, which is taken; -1: none.
 */
export function launchesOf(drawn: Drawn, indexes: readonly number[], within: number): Launches {
  const kernels = indexes.flatMap((index) => drawn.kernels[index] ?? []);
  const { branches } = drawn;
  return {
    launches: oneArmEach(branches, kernels, within, (kernel) => kernel.launches, Math.max),
    launchesAtLeast: oneArmEach(branches, kernels, within, (kernel) => kernel.launchesAtLeast, Math.min),
    launchesKnown: kernels.every((kernel) => kernel.launchesKnown),
  };
}

export interface Figures {
  /** Bytes read and written in device memory, each input of a kernel once; at most. */
  readonly read: number;
  readonly written: number;
  readonly flops: number;
  /** Measured, else an estimate; `null` where that of no kernel is known. */
  readonly seconds: number | null;
  /** `≥` where a number of iterations is not known, `≈` for a time that is estimated. */
  readonly bytesSign: "" | "≥ ";
  readonly timeSign: "" | "≈ " | "≥ ";
}

/** Whether kernels have measured times: those of a measurement of an older text are of other kernels. */
export function isMeasured(drawn: Drawn): boolean {
  return drawn.measured?.stale === false;
}

/** @param within the branch that all of them are in, which is taken; -1: none. */
export function figuresOf(drawn: Drawn, indexes: readonly number[], within = -1): Figures {
  const kernels = indexes.flatMap((index) => drawn.kernels[index] ?? []);
  const most = (figure: (kernel: Kernel) => number): number =>
    oneArmEach(drawn.branches, kernels, within, figure, Math.max);
  const areCounted = kernels.every((kernel) => kernel.runsKnown);
  const measured = kernels.flatMap((kernel) => kernel.measured ?? []);
  const timed = kernels.filter((kernel) => kernel.seconds !== null);
  const estimated = timed.length === 0 ? null : most((kernel) => kernel.seconds ?? 0);
  const estimateSign = areCounted && timed.length === kernels.length ? "≈ " : "≥ ";
  return {
    read: most((kernel) => kernel.runs * bytesOf(kernel.inputs)),
    written: most((kernel) => kernel.runs * bytesOf(kernel.outputs)),
    flops: most((kernel) => kernel.runs * kernel.flops),
    // Of a conditional, the arm that ran was measured.
    seconds: measured.length > 0 ? measured.reduce((sum, each) => sum + each, 0) : estimated,
    bytesSign: areCounted ? "" : "≥ ",
    timeSign: measured.length > 0 ? "" : estimateSign,
  };
}

export function bytesOf(values: readonly Value[]): number {
  return values.reduce((sum, value) => sum + value.bytes, 0);
}

function oneArmEach(
  branches: readonly Branch[],
  kernels: readonly Kernel[],
  within: number,
  figure: (kernel: Kernel) => number,
  taken: (...arms: number[]) => number,
): number {
  const sums = branches.map(() => 0);
  let total = 0;
  const add = (branch: number, launches: number): void => {
    if (branch < 0 || branch === within) {
      total += launches;
    } else {
      sums[branch] = (sums[branch] ?? 0) + launches;
    }
  };
  for (const kernel of kernels) {
    add(kernel.branch, figure(kernel));
  }
  // Conditionals within an arm have greater indexes than it.
  for (const [first, { arm, arms, parent }] of [...branches.entries()].reverse()) {
    if (arm === 0) {
      add(parent, taken(...sums.slice(first, first + arms)));
    }
  }
  return total;
}
