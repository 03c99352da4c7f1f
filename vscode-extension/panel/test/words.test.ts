import assert from "node:assert/strict";
import { test } from "node:test";

import { goesOn, tokens } from "../src/colours";
import { difference } from "../src/diff";
import { listed } from "../src/listed";
import type { Launches } from "../src/messages";
import { resolved } from "../src/saved";
import { duration, flops, launchFigure, short, size, times } from "../src/words";
import { SHOWN } from "./nested";

const { kernels } = SHOWN.drawn;

test("amounts are told as the server tells them", () => {
  assert.deepEqual([0, 513, 524288, 1.5 * 2 ** 20, -1].map(size), ["0 B", "513 B", "512 KiB", "1.5 MiB", "?"]);
  assert.deepEqual([3.47e-6, 1.2e-3, 2, 4e-8, 1e-12].map(duration), ["3.5 µs", "1.2 ms", "2 s", "40 ns", "< 0.1 ns"]);
  assert.equal(flops(8320), "8.3 kFLOP");
  assert.equal(short("a\n  b", 10), "a b");
  assert.equal(short("abcdef", 4), "abc…");
});

test("launches are a figure, a range or a lower end, and those of one kernel follow its name", () => {
  const figures = (launchesAtLeast: number, launches: number, launchesKnown = true): Launches => ({ launchesAtLeast, launches, launchesKnown });
  const all = [figures(1, 1), figures(7, 7), figures(15, 16), figures(0, 0), figures(2, 5, false)];
  assert.deepEqual(all.map(launchFigure), ["1", "7", "15–16", "0", "≥ 2"]);
  assert.deepEqual(all.map(times), ["", " × 7", " × 15–16", ", never launched", " × ?"]);
});

test("a table for a report has what copies feed, and no launches that are not known", () => {
  const kernels = SHOWN.drawn.kernels.map((kernel, index) => (index === 4 ? { ...kernel, launchesKnown: false } : kernel));
  const rows = listed({ ...SHOWN, drawn: { ...SHOWN.drawn, kernels } }).split("\n");
  assert.match(rows.find((row) => row.startsWith("| 1 |")) ?? "", /^\| 1 \| copy of .* \| 1 \| .* \| for 17 \|$/);
  assert.match(rows.find((row) => row.startsWith("| 5 |")) ?? "", /^\| 5 \| loop fusion \| \? \| .* \| 13 \|$/);
});

test("nothing changed where the kernels are the same", () => {
  const { added, gone } = difference(kernels, kernels);
  assert.deepEqual([added.size, gone.length], [0, 0]);
});

test("a kernel that came and one that went are told, and what stayed is not", () => {
  const before = kernels.slice(0, 10);
  const now = [...kernels.slice(0, 4), ...kernels.slice(5, 10), ...kernels.slice(18)];
  const { added, gone } = difference(before, now);
  assert.deepEqual([...added], [9]);
  assert.deepEqual(gone, [kernels[4]]);
});

test("a kernel of another type or another count of launches is another one", () => {
  const [first, ...rest] = kernels;
  assert.ok(first);
  const { added, gone } = difference(kernels, [{ ...first, launches: 2 }, ...rest]);
  assert.deepEqual([[...added], gone], [[0], [first]]);
});

test("very many kernels are compared too", () => {
  const [first, second] = kernels;
  assert.ok(first && second);
  const before = [first, ...Array.from({ length: 5000 }, () => second), first];
  const now = [second, ...Array.from({ length: 5001 }, () => second), second];
  const { added, gone } = difference(before, now);
  assert.deepEqual([added.size, gone.length], [3, 2]);
});

test("a line is coloured without losing a character", () => {
  for (const line of SHOWN.drawn.kernels.map((kernel) => kernel.name).concat(['%a = f32[8]{0} fusion(%p.1), metadata={op_name="x"} // why'])) {
    assert.equal(tokens(line).map((token) => token.text).join(""), line);
  }
  const kinds = Object.fromEntries(tokens('%a = f32[8] add(%b), x="s" # 7').map(({ text, kind }) => [text, kind]));
  assert.deepEqual([kinds["%a"], kinds.f32, kinds['"s"'], kinds["# 7"]], ["name", "type", "string", "comment"]);
});

test("a docstring is coloured over its lines, and what is beside it as code", () => {
  const text = String.raw`
def f():  # not """
    r"""One "quoted" \""" word,
    return 7 # '''
    """ + x // 2
    y = '''one''' + '"""'
    return y`;
  let open: Parameters<typeof goesOn>[1] = "";
  const strings = text.split("\n").flatMap((line) => {
    const found = tokens(line, open);
    open = goesOn(line, open);
    assert.equal(found.map((token) => token.text).join(""), line);
    return found.filter(({ kind }) => kind === "string").map((token) => token.text);
  });
  assert.deepEqual(strings, [String.raw`"""One "quoted" \""" word,`, "    return 7 # '''", '    """', "'''one'''", `'"""'`]);
  assert.ok(!tokens("n // 2").some(({ kind }) => kind === "comment"));
});

test("a saved picture has the colours themselves, the nearest that is set", () => {
  const set: Readonly<Record<string, string>> = { "--b": "#00f" };
  const variable = (name: string): string => set[name] ?? "";
  assert.equal(resolved("fill: var(--a, var(--b, red)); x: var(--c, #111)", variable), "fill: #00f; x: #111");
});
