import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Window } from "happy-dom";

import type { App } from "../src/app";
import type { Layout } from "../src/layout";
import type { FromPanel, Kept, Shown, ToPanel } from "../src/messages";
import type { Scene, SceneNode } from "../src/scene";
import { SHOWN, TEXTS, URI } from "./nested";

/** Everything in one column: where nodes stand is the layout's business, and tested with it. */
const COLUMN = {
  layout: (scene: Scene): Promise<Layout> => {
    const flat = (nodes: readonly SceneNode[]): readonly SceneNode[] => nodes.flatMap((node) => [node, ...flat(node.children)]);
    const nodes = flat(scene.nodes).map((node, index) => ({ node, depth: 0, x: 0, y: 10 * index, width: 9, height: 9 }));
    return Promise.resolve({ width: 9, height: 10 * nodes.length, nodes, edges: [] });
  },
};

let sent: FromPanel[] = [];
let kept: Kept | undefined;
let app: App;
let page: Window;

beforeEach(async () => {
  page = new Window({ width: 800, height: 600 });
  const { document, Element, XMLSerializer } = page;
  Object.assign(globalThis, {
    document,
    Element,
    XMLSerializer,
    getComputedStyle: page.getComputedStyle.bind(page),
    getSelection: page.getSelection.bind(page),
    requestAnimationFrame: page.requestAnimationFrame.bind(page),
  });
  const { App } = await import("../src/app");
  sent = [];
  kept = undefined;
  const host = {
    send: (message: FromPanel): void => {
      sent.push(message);
    },
    keep: (state: Kept): void => {
      kept = state;
    },
  };
  app = new App(host, COLUMN, 17);
  document.body.append(app.element as never);
});

async function hear(...messages: ToPanel[]): Promise<void> {
  for (const message of messages) {
    app.hear(message);
  }
  await settled();
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => page.requestAnimationFrame(resolve));
  }
}

function show(changes: Partial<Shown> = {}): ToPanel {
  return { type: "show", shown: { ...SHOWN, ...changes } };
}

function found(selector: string): HTMLElement {
  const element = app.element.querySelector<HTMLElement>(selector);
  assert.ok(element, selector);
  return element;
}

function marked(name: string): readonly string[] {
  return [...app.element.querySelectorAll(`.node.${name}`)].map((node) => node.getAttribute("data-id") ?? "");
}

function key(element: HTMLElement, name: string): void {
  element.dispatchEvent(new page.KeyboardEvent("keydown", { key: name, bubbles: true }) as never);
}

function last(type: FromPanel["type"]): FromPanel | undefined {
  return sent.findLast((message) => message.type === type);
}

test("before there is a function the panel says what to do", async () => {
  await hear({ type: "show", shown: null });
  assert.match(found(".banner").textContent, /Put the cursor into a function/);
});

test("a function is named, with its figures, and kept over a reload", async () => {
  await hear(show());
  assert.equal(found("h1").textContent, "nested");
  assert.match(found("footer").textContent, /^19 kernels · 179 launches · temp 2 KiB · h100/);
  assert.deepEqual(kept, { uri: URI, function: "nested", pinned: false, paused: false });
});

test("the cursor lights its kernels", async () => {
  await hear(show(), { type: "cursor", uri: URI, position: { line: 9, character: 26 } });
  assert.deepEqual(marked("lit"), ["k6"]);
});

test("keys walk to a kernel and on to its source", async () => {
  await hear(show());
  const graph = found(".graph-area");
  key(graph, "ArrowDown");
  key(graph, "ArrowDown");
  await settled();
  const [active] = marked("active");
  assert.equal(graph.getAttribute("aria-activedescendant"), `node-${active ?? ""}`);
  key(graph, "Enter");
  const message = last("reveal");
  assert.ok(message?.type === "reveal" && message.focus);
  assert.deepEqual(marked("chosen"), [active]);
});

test("a chosen kernel tells its equations, each of which leads to its place", async () => {
  await hear(show());
  app.element.querySelector(".node[data-id=k6]")?.dispatchEvent(new page.MouseEvent("dblclick", { bubbles: true }) as never);
  await settled();
  assert.match(found("aside h2").textContent, /7 {2}input fusion \(reduction\)/);
  const equation = found(".equation");
  assert.match(equation.textContent, /dot_general.*f32\[64\].*m @ v/);
  equation.click();
  const message = last("reveal");
  assert.ok(message?.type === "reveal");
  assert.equal(message.places[0]?.range.start.line, 9);
});

test("a text is asked for when its tab is opened, once, and lit by the cursor", async () => {
  await hear(show(), { type: "cursor", uri: URI, position: { line: 9, character: 26 } });
  assert.equal(last("content"), undefined);
  found("#tab-jaxpr").click();
  found("#tab-graph").click();
  found("#tab-jaxpr").click();
  assert.deepEqual(sent.filter((message) => message.type === "content"), [{ type: "content", kind: "jaxpr" }]);
  await hear({ type: "content", kind: "jaxpr", content: TEXTS.jaxpr });
  assert.match(found("#page-jaxpr .line.lit").textContent, /dot_general/);
});

test("a line of a text leads to its source and its kernel", async () => {
  await hear(show());
  found("#tab-hlo").click();
  await hear({ type: "content", kind: "hlo", content: TEXTS.hlo });
  const area = found("#page-hlo .text-area");
  key(area, "Home");
  key(area, "ArrowDown");
  key(area, "Enter");
  const message = last("reveal");
  assert.ok(message?.type === "reveal" && message.focus);
});

test("arrows move between tabs, and only the open one is in the order of the tab key", async () => {
  await hear(show());
  key(found("[role=tablist]"), "ArrowRight");
  assert.equal(found("[role=tab][aria-selected=true]").textContent, "jaxpr");
  assert.deepEqual([...app.element.querySelectorAll("[role=tab][tabindex='0']")].map((tab) => tab.textContent), ["jaxpr"]);
  assert.ok(found("#page-graph").hidden);
});

test("the target and the example set are chosen among those that there are", async () => {
  await hear(show({ sets: ["", "decode"], targets: ["cuda:h100", "cpu"] }));
  const [sets, targets] = [...app.element.querySelectorAll("header select")] as HTMLSelectElement[];
  assert.ok(sets && targets);
  assert.deepEqual([...sets.options].map((option) => option.textContent), ["the first one", "decode"]);
  sets.value = "decode";
  sets.dispatchEvent(new page.Event("change") as never);
  targets.value = "cpu";
  targets.dispatchEvent(new page.Event("change") as never);
  assert.deepEqual(sent.slice(-2), [
    { type: "chooseSet", set: "decode" },
    { type: "chooseTarget", target: "cpu" },
  ]);
});

test("pinned and paused are told to the host and kept", async () => {
  await hear(show());
  found("[title^=Pin]").click();
  assert.deepEqual(last("follow"), { type: "follow", following: { pinned: true, paused: false } });
  assert.equal(kept?.pinned, true);
  assert.equal(found("[title^=Pin]").getAttribute("aria-pressed"), "true");
});

test("while the text is half written the picture stays, and says that it is old", async () => {
  await hear(show());
  await hear(show({ drawn: null, trouble: "nested cannot be traced: NameError" }));
  assert.ok(app.element.querySelectorAll(".node").length > 0);
  assert.match(found(".banner").textContent, /NameError/);
  assert.match(found("footer").textContent, /before the last edits/);
  await hear(show());
  assert.ok(found(".banner").hidden);
});

test("the picture of another function does not stay", async () => {
  await hear(show());
  await hear(show({ function: "other", drawn: null, trouble: "other cannot be traced" }));
  assert.equal(app.element.querySelectorAll(".node").length, 0);
});

test("what changed since the last save is listed and marked", async () => {
  const { drawn } = SHOWN;
  const before = { launches: 9, launchesKnown: true, memory: drawn.memory, kernels: drawn.kernels.slice(0, 18) };
  await hear(show({ drawn: { ...drawn, before, change: "kernels 18 → 19" } }));
  found("#tab-hlo").click();
  found("[title^=Compare]").click();
  assert.ok(!found("#page-graph").hidden, "that is where it is told");
  assert.match(found("aside").textContent, /kernels18→19/);
  assert.match(found("li.new").textContent, /19 {2}Triton reduction/);
  assert.deepEqual(marked("added"), ["k18"]);
});

test("the kernels are copied as a table, a text as it is", async () => {
  await hear(show());
  found("[title^=Copy]").click();
  const table = last("copy");
  assert.ok(table?.type === "copy");
  assert.match(table.text, /\| 7 \| input fusion \(reduction\) \| 21 \| 16\.3 KiB \| 256 B \| reduction \| 10 \|/);
  found("#tab-jaxpr").click();
  await hear({ type: "content", kind: "jaxpr", content: TEXTS.jaxpr });
  found("[title^=Copy]").click();
  assert.deepEqual(last("copy"), { type: "copy", text: TEXTS.jaxpr.text, what: "the jaxpr" });
});

test("the saved picture is whole and needs nothing else", async () => {
  await hear(show());
  found("[title^=Save]").click();
  const message = last("save");
  assert.ok(message?.type === "save");
  assert.equal(message.name, "nested.svg");
  assert.equal(message.svg.match(/class="node kernel/g)?.length, 19);
  assert.match(message.svg, /<style/);
  assert.doesNotMatch(message.svg, /var\(/);
});

test("temporaries are listed with the kernels that they pass between", async () => {
  await hear(show());
  found("#tab-memory").click();
  const rows = [...app.element.querySelectorAll<HTMLElement>(".temporary")];
  assert.equal(rows.length, SHOWN.drawn.temporaries.length);
  assert.match(rows[0]?.getAttribute("aria-label") ?? "", /^f32\[64\], 256 B, from kernel 8 to 6, 7, 10/);
  rows[0]?.click();
  assert.equal(last("reveal")?.type, "reveal");
});
