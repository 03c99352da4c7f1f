/** Where a text occurs in a report. */

import type { Kind, Report, ReportEntry } from "./messages";
import { titled } from "./scene";

export interface Hit {
  /** `#p1.k12` */
  readonly address: string;
  /** `f · cuda:h100 · kernel 12` */
  readonly where: string;
  readonly text: string;
}

/** Places that are shown: more would not be read. */
const MOST = 200;
const NAMES: Readonly<Partial<Record<Kind, string>>> = { stablehlo: "StableHLO", hlo: "HLO", pretty: "sourcerized" };
/** Characters of a line that are shown around what was found. */
const AROUND = 60;

export function search(
  wanted: string,
  entries: readonly ReportEntry[],
  { sources, findings }: Pick<Report, "sources" | "findings">,
): { readonly hits: readonly Hit[]; readonly total: number } {
  const text = wanted.trim().toLowerCase();
  const hits: Hit[] = [];
  let total = 0;
  const look = (line: string, address: () => string, where: () => string): void => {
    const at = line.toLowerCase().indexOf(text);
    if (at >= 0) {
      total++;
      if (hits.length < MOST) {
        hits.push({ address: address(), where: where(), text: cut(line, at, text.length) });
      }
    }
  };
  if (text === "") {
    return { hits, total };
  }
  findings.forEach((finding, at) => {
    const lines = [finding.code, finding.message, finding.help, ...finding.notes].join(" · ");
    look(lines, () => `#finding-${at + 1}`, () => finding.function);
  });
  entries.forEach(({ label, shown }, program) => {
    shown.drawn?.kernels.forEach((kernel, at) => {
      const line = [titled(kernel), kernel.endsBecause, ...kernel.outputs.map((value) => value.text)].join(" · ");
      look(line, () => `#p${program + 1}.k${at + 1}`, () => `${label} · ${shown.target} · kernel ${at + 1}`);
    });
  });
  for (const source of sources) {
    const program = entries.findIndex(({ shown }) => shown.uri === source.uri);
    source.text.split("\n").forEach((line, at) => {
      look(line, () => `#p${program + 1}.code.${at + 1}`, () => `${source.name}:${source.numbers[at] ?? ""}`);
    });
  }
  entries.forEach(({ label, shown, contents }, program) => {
    for (const kind of ["jaxpr", "stablehlo", "hlo", "pretty"] as const) {
      contents[kind]?.text.split("\n").forEach((line, at) => {
        look(line, () => `#p${program + 1}.${kind}.${at + 1}`, () => `${label} · ${shown.target} · ${NAMES[kind] ?? kind}:${at + 1}`);
      });
    }
  });
  return { hits, total };
}

function cut(line: string, at: number, length: number): string {
  const first = Math.max(0, at - AROUND);
  const last = at + length + AROUND;
  return `${first > 0 ? "…" : ""}${line.slice(first, last).trim()}${last < line.length ? "…" : ""}`;
}
