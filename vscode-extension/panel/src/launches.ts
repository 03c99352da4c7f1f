/** Launches of some kernels in one run of the program, of each conditional one arm. */

import type { Branch, Drawn, Kernel, Launches } from "./messages";

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
