import assert from "node:assert/strict";
import { test } from "node:test";

import type { Report, ReportEntry } from "../src/messages";
import { compared } from "../src/report";
import { search } from "../src/report_search";
import { SHOWN, TEXTS, URI } from "./nested";

const ENTRY: ReportEntry = { shown: SHOWN, contents: TEXTS, swept: null, label: "nested", figures: [], against: null };
const REPORT: Pick<Report, "sources" | "findings"> = {
  sources: [{ uri: SHOWN.uri, name: "nested.py", numbers: [7, 12], text: "first = 1\nsecond = first" }],
  findings: [{ code: "JX201", severity: "warning", function: "nested", place: null, message: "a reduction", help: "write it out", notes: [], targets: [] }],
};

test("a search finds findings, kernels, source and texts, each with its address", () => {
  const found = (text: string): readonly string[] => search(text, [ENTRY], REPORT).hits.map((hit) => `${hit.where} ${hit.address}`);
  assert.equal(SHOWN.uri, URI);
  assert.deepEqual(found("Second ="), ["nested.py:12 #p1.code.2"]);
  assert.deepEqual(found("jx201"), ["nested #finding-1"]);
  assert.deepEqual(found("Triton reduction"), ["nested · cuda:h100 · kernel 19 #p1.k19"]);
  const hlo = TEXTS.hlo.text.split("\n").findIndex((line) => line.startsWith("ENTRY "));
  assert.equal(found("ENTRY ").at(-1), `nested · cuda:h100 · HLO:${hlo + 1} #p1.hlo.${hlo + 1}`);
});

test("what is found too often is counted, and a long line is cut around it", () => {
  const text = Array.from({ length: 500 }, () => `${"a".repeat(200)} wanted ${"b".repeat(200)}`).join("\n");
  const sources = [{ uri: URI, name: "long.py", numbers: [], text }];
  const { hits, total } = search("wanted", [ENTRY], { sources, findings: [] });
  assert.deepEqual([hits.length, total], [200, 500]);
  assert.match(hits[0]?.text ?? "", /^…a+ wanted b+…$/);
});

test("nothing is found without words", () => {
  assert.equal(search("  ", [ENTRY], REPORT).total, 0);
});

test("a program that is compared has the other one as an editor has that of the last save", () => {
  const first = { ...ENTRY, against: 1 };
  const { shown } = compared(first, [first, { ...ENTRY, label: "other" }]);
  assert.equal(shown.comparedWith, "other · cuda:h100");
  assert.equal(shown.drawn?.before?.kernels.length, SHOWN.drawn.kernels.length);
  assert.equal(compared(ENTRY, [ENTRY]), ENTRY);
});
