/** A server's answer for a scan with a loop and a conditional in it, on an H100, as it came. */

import type { Content, Drawn, Shown } from "../src/messages";
import given from "./nested.json" with { type: "json" };

export const SHOWN = given.shown as unknown as Shown & { readonly drawn: Drawn };
export const TEXTS = given.texts as unknown as Readonly<Record<"jaxpr" | "hlo", Content>>;
export const URI = "file:///project/nested.py";

/** The same function as it was measured: its first two kernels took 3 and 1 of 5 µs, something else the rest. */
export function measured(stale: boolean): Drawn {
  const { drawn } = SHOWN;
  return {
    ...drawn,
    kernels: drawn.kernels.map((kernel, index) => ({ ...kernel, measured: stale ? null : ([3e-6, 1e-6][index] ?? null) })),
    measured: {
      headline: stale ? "~8 µs measured" : "8 µs measured (≈ 4)",
      stale,
      seconds: 8e-6,
      deviceSeconds: 5e-6,
      unmatchedSeconds: 1e-6,
      notes: ["median of 500 runs"],
    },
  };
}

/** The same function with only so many of its kernels, or with them over and over. */
export function withKernels(count: number): Drawn {
  const { drawn } = SHOWN;
  const kernels = Array.from({ length: count }, (_, index) => {
    const kernel = drawn.kernels[index % drawn.kernels.length];
    if (kernel === undefined) {
      throw new RangeError("the answer has no kernels");
    }
    return { ...kernel, loops: [], branch: -1, group: -1 };
  });
  const edges = kernels.slice(1).map((_, index) => ({
    source: { what: "kernel" as const, index },
    target: { what: "kernel" as const, index: index + 1 },
    value: { text: "f32[64]", bytes: 256 },
  }));
  return { ...drawn, kernels, edges, loops: [], branches: [], temporaries: [] };
}
