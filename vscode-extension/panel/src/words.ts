/** Amounts for people, as the server words them. */

import type { Launches } from "./messages";

/** `512 KiB`, `1.5 MiB`, `513 B`; `?` for what nobody knows. */
export function size(bytes: number): string {
  if (bytes < 0) {
    return "?";
  }
  let amount = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (amount < 1024) {
      return `${rounded(amount)} ${unit}`;
    }
    amount /= 1024;
  }
  return `${rounded(amount)} TiB`;
}

/** `3.5 µs`, `1.2 ms`, `40 ns`. */
export function duration(seconds: number): string {
  if (seconds < 5e-11) {
    return "< 0.1 ns";
  }
  if (seconds < 1e-6) {
    return `${rounded(seconds * 1e9)} ns`;
  }
  if (seconds < 1e-3) {
    return `${rounded(seconds * 1e6)} µs`;
  }
  return seconds < 1 ? `${rounded(seconds * 1e3)} ms` : `${rounded(seconds)} s`;
}

/** `1 kernel`, `2 kernels`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** `3`, `3–7` where values decide, `≥ 3` where a number of iterations is not known. */
export function launchFigure({ launches, launchesAtLeast, launchesKnown }: Launches): string {
  if (!launchesKnown) {
    return `≥ ${launchesAtLeast}`;
  }
  return launches === launchesAtLeast ? `${launches}` : `${launchesAtLeast}–${launches}`;
}

/** ` × 7`, ` × 15–16`, ` × ?`, `, never launched`; nothing for one launch. */
export function times(launches: Launches): string {
  if (!launches.launchesKnown) {
    return " × ?";
  }
  if (launches.launches === 0) {
    return ", never launched";
  }
  const figure = launchFigure(launches);
  return figure === "1" ? "" : ` × ${figure}`;
}

/** `2.1 GFLOP` */
export function flops(number: number): string {
  let amount = number;
  for (const unit of ["FLOP", "kFLOP", "MFLOP", "GFLOP"]) {
    if (amount < 1000) {
      return `${rounded(amount)} ${unit}`;
    }
    amount /= 1000;
  }
  return `${rounded(amount)} TFLOP`;
}

/** On one line, at most `most` characters. */
export function short(text: string, most: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

function rounded(amount: number): string {
  return String(Number(amount.toFixed(amount < 100 ? 1 : 0)));
}
