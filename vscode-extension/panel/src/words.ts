/** Amounts for people, as the server words them. */

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

/** `3.5 µs`, `1.2 ms`. */
export function duration(seconds: number): string {
  if (seconds < 1e-3) {
    return `${rounded(seconds * 1e6)} µs`;
  }
  return seconds < 1 ? `${rounded(seconds * 1e3)} ms` : `${rounded(seconds)} s`;
}

/** `1 kernel`, `2 kernels`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
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
