import assert from "node:assert/strict";
import { test } from "node:test";

import { EmbeddedHost } from "../src/embedded";
import type { Entry, FromPanel, Shown, ToPanel } from "../src/messages";
import { SHOWN, TEXTS } from "./nested";

function entry(changes: Partial<Shown>): Entry {
  return { shown: { ...SHOWN, ...changes }, contents: { jaxpr: TEXTS.jaxpr }, swept: null };
}

function joined(...entries: Entry[]): { host: EmbeddedHost; said: ToPanel[]; revealed: FromPanel[] } {
  const said: ToPanel[] = [];
  const revealed: FromPanel[] = [];
  const host = new EmbeddedHost({ entries }, (message) => {
    revealed.push(message);
  });
  host.join((message) => {
    said.push(message);
  });
  return { host, said, revealed };
}

function shown(said: readonly ToPanel[]): readonly (string | undefined)[] {
  return said.flatMap((message) => (message.type === "show" ? [message.shown?.target] : []));
}

test("the first answer is shown at once", () => {
  assert.deepEqual(shown(joined(entry({ target: "cpu" }), entry({ target: "cuda:h100" })).said), ["cpu"]);
});

test("another target is another answer about the same function with the same inputs", () => {
  const others = [entry({ function: "other", target: "cuda:h100" }), entry({ set: "large", target: "tpu:v6e" })];
  const { host, said } = joined(entry({ target: "cpu" }), ...others, entry({ target: "cuda:h100" }));
  host.send({ type: "chooseTarget", target: "cuda:h100" });
  const last = said.findLast((message) => message.type === "show");
  assert.deepEqual(last?.shown?.targets, ["cpu", "tpu:v6e", "cuda:h100"]);
  assert.deepEqual([last.shown.function, last.shown.set, last.shown.target], [SHOWN.function, SHOWN.set, "cuda:h100"]);
  host.send({ type: "chooseTarget", target: "tpu:v5e" }); // nobody asked for it
  assert.equal(shown(said).length, 2);
});

test("a text is answered from the page", () => {
  const { host, said } = joined(entry({}));
  host.send({ type: "content", kind: "jaxpr" });
  assert.deepEqual(said.at(-1), { type: "content", kind: "jaxpr", content: TEXTS.jaxpr });
});

test("what is to be seen of the source is told to the page, and nothing else leaves the host", () => {
  const { host, revealed } = joined(entry({}));
  const message = { type: "reveal", places: [], focus: false, kernels: [1] } as const;
  host.send({ type: "ready" });
  host.send({ type: "measure" });
  host.send(message);
  assert.deepEqual(revealed, [message]);
});
