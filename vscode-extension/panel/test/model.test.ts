import assert from "node:assert/strict";
import { test } from "node:test";

import type { Equation } from "../src/messages";
import { linesAt, Model } from "../src/model";
import { measured, SHOWN, TEXTS, URI } from "./nested";

const model = new Model(SHOWN.drawn);

test("the cursor on an expression finds the kernels that compute it", () => {
  // return jnp.tanh(m @ v) / jnp.sum(v)
  assert.deepEqual(model.kernelsAt(URI, { line: 9, character: 26 }), [6], "m @ v");
  assert.deepEqual(model.kernelsAt(URI, { line: 9, character: 36 }), [5], "jnp.sum(v)");
});

test("the cursor beside the expressions of a line finds all of its kernels", () => {
  assert.deepEqual(model.kernelsAt(URI, { line: 9, character: 2 }), [5, 6, 7]);
  assert.deepEqual(model.kernelsAt(URI, { line: 3, character: 0 }), []);
  assert.deepEqual(model.kernelsAt("file:///project/another.py", { line: 9, character: 26 }), []);
});

test("an equation finds the kernels that compute what is inside it", () => {
  assert.deepEqual(model.kernelsOf("0/body/4"), [11, 12], "both arms of the conditional");
  assert.deepEqual(model.kernelsOf("99"), []);
});

test("a kernel is told by its innermost equations alone", () => {
  assert.deepEqual(model.sources(6), ["m @ v", "jnp.tanh(m @ v)"], "without the loops around them");
  assert.deepEqual(model.linesOf(6), [10]);
});

test("the cursor finds the lines of a text that stand for the innermost expression", () => {
  const lines = linesAt(TEXTS.jaxpr.links, URI, { line: 9, character: 26 });
  const text = TEXTS.jaxpr.text.split("\n");
  assert.match(text[lines[0] ?? -1] ?? "", /dot_general/);
  assert.deepEqual(linesAt(TEXTS.jaxpr.links, URI, { line: 0, character: 0 }), []);
});

test("the layout at a position is that of the innermost expression, if all of its equations agree", () => {
  const place = { uri: URI, range: { start: { line: 3, character: 4 }, end: { line: 3, character: 9 } } };
  const equation = (path: string, text: string): Equation => ({
    path,
    primitive: "add",
    outputs: [],
    scope: [],
    backward: false,
    text: "a + b",
    place,
    divided: { text, local: "", cells: [[[0], [1]]] },
  });
  const at = (...texts: string[]): string | undefined => {
    const equations = texts.map((text, index) => equation(String(index), text));
    return new Model({ ...SHOWN.drawn, equations }).dividedAt(URI, { line: 3, character: 5 })?.text;
  };
  assert.equal(at("f32[8@x]", "f32[8@x]"), "f32[8@x]");
  assert.equal(at("f32[8@x]", "f32[8]"), undefined);
});

test("times are measured where they were, and shares are of all that the device did", () => {
  const now = new Model(measured(false));
  assert.deepEqual([0, 1, 2].map((index) => now.secondsOf(index)), [3e-6, 1e-6, null]);
  const shares = [0, 1].map((index) => Math.round(100 * (now.timeShare(index) ?? 0)));
  assert.deepEqual(shares, [60, 20], "a fifth is of no kernel");
  assert.equal(now.timeShare(2), undefined);
});

test("a measurement of an older text says nothing of kernels", () => {
  const older = new Model(measured(true));
  assert.equal(older.secondsOf(6), SHOWN.drawn.kernels[6]?.seconds);
  assert.equal(older.timeShare(6), model.timeShare(6));
});
