/** How much of the temporaries is alive while each kernel runs: from the kernel that writes one to the last that reads it. */

import type { Drawn, Temporary } from "./messages";

export interface Live {
  /** Bytes by kernel, in the order of the schedule; kernels of a loop once. */
  readonly bytes: readonly number[];
  readonly peak: number;
  /** The first kernel at the peak. */
  readonly peakAt: number;
}

export function lastReader({ producer, consumers }: Temporary): number {
  return Math.max(producer, ...consumers);
}

export function live({ kernels, temporaries }: Drawn): Live {
  const change = Array.from({ length: kernels.length + 1 }, () => 0);
  for (const each of temporaries) {
    change[each.producer] = (change[each.producer] ?? 0) + each.value.bytes;
    const after = lastReader(each) + 1;
    change[after] = (change[after] ?? 0) - each.value.bytes;
  }
  let alive = 0;
  const bytes = kernels.map((_, index) => (alive += change[index] ?? 0));
  const peak = Math.max(0, ...bytes);
  return { bytes, peak, peakAt: Math.max(0, bytes.indexOf(peak)) };
}

/** The temporaries that are alive while a kernel runs, the largest first. */
export function liveAt({ temporaries }: Drawn, kernel: number): readonly Temporary[] {
  return temporaries.filter((each) => each.producer <= kernel && kernel <= lastReader(each)).sort((a, b) => b.value.bytes - a.value.bytes);
}
