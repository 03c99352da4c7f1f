import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Window } from "happy-dom";

import type { App } from "../src/app";
import type { Layout } from "../src/layout";
import { live } from "../src/live";
import { EDITOR, type FromPanel, type Kept, type Shown, type Swept, type Temporary, type ToPanel } from "../src/messages";
import type { Scene, SceneNode } from "../src/scene";
import { measured, SHOWN, TEXTS, URI } from "./nested";

/** Everything in one column: where nodes stand is the layout's business, and tested with it. */
const COLUMN = {
  layout: (scene: Scene): Promise<Layout> => {
    const flat = (nodes: readonly SceneNode[]): readonly SceneNode[] => nodes.flatMap((node) => [node, ...flat(node.children)]);
    const nodes = flat(scene.nodes).map((node, index) => ({ node, depth: 0, x: 0, y: 10 * index, width: 9, height: 9, head: 0 }));
    return Promise.resolve({ width: 9, height: 10 * nodes.length, nodes, edges: [], isPacked: false });
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
    can: EDITOR,
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
  assert.match(found(".banner").textContent, /Place the cursor in a function/);
});

test("a function is named, with its figures, and kept over a reload", async () => {
  await hear(show());
  assert.equal(found("h1").textContent, "nested");
  assert.match(found("footer").textContent, /^19 kernels · 144–151 launches · temp 2 KiB · h100/);
  assert.deepEqual(kept, { uri: URI, function: "nested", pinned: false, paused: false });
});

test("the cursor lights its kernels", async () => {
  await hear(show(), { type: "cursor", uri: URI, position: { line: 9, character: 26 } });
  assert.deepEqual(marked("lit"), ["k6"]);
});

test("the layout of the value at the cursor is drawn, and a collective is described", async () => {
  const collective = { kind: "all-reduce", bytes: 64, axes: ["x"], groups: [[0, 1]], inserted: true, async: false, scope: "over x" };
  const description = ["kernel 7: all-reduce over x", "inserted by the partitioner for `m @ v`"];
  const { drawn } = SHOWN;
  const kernels = drawn.kernels.map((kernel, index) => (index === 6 ? { ...kernel, kind: "collective", collective, description } : kernel));
  const divided = { text: "f32[64@x]", local: "f32[32]", cells: [[[0], [1]]] };
  const equations = drawn.equations.map((equation) => ({ ...equation, divided }));
  await hear(show({ drawn: { ...drawn, kernels, equations, devices: 2, mesh: "x=2" } }));
  await hear({ type: "cursor", uri: URI, position: { line: 9, character: 26 } });
  assert.match(found(".layout").textContent, /^f32\[64@x\]per device f32\[32\] · mesh x=2/);
  assert.deepEqual([...app.element.querySelectorAll(".parts text")].map((part) => part.textContent), ["0", "1"]);
  found('.node[data-id="k6"]').dispatchEvent(new page.MouseEvent("dblclick", { bubbles: true }) as never);
  await settled();
  assert.deepEqual([...app.element.querySelectorAll(".communication li")].map((line) => line.textContent), description.slice(1));
  assert.match(found(".memory-area").textContent, /^Memory of one of 2 devices\./);
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

test("a copy says what it feeds, and leads there", async () => {
  await hear(show());
  app.element.querySelector(".node[data-id=k0]")?.dispatchEvent(new page.MouseEvent("dblclick", { bubbles: true }) as never);
  await settled();
  assert.equal(found("aside h3").textContent, "feeds");
  assert.match(found(".equation").textContent, /^scan.*jax\.lax\.scan\(step, v, length=7\)$/);
  found(".equation").click();
  const message = last("reveal");
  assert.ok(message?.type === "reveal");
  assert.equal(message.places[0]?.range.start.line, 16);
});

test("the condition of a counted loop is never launched, and takes no time", async () => {
  await hear(show());
  app.element.querySelector(".node[data-id=k8]")?.dispatchEvent(new page.MouseEvent("dblclick", { bubbles: true }) as never);
  await settled();
  assert.match(found("aside p").textContent, /^never launched as the number of iterations is known · (?!.*≈)/);
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
  assert.deepEqual([...sets.options].map((option) => option.textContent), ["(unnamed)", "decode"]);
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
  const before = { launches: 9, launchesAtLeast: 9, launchesKnown: true, memory: drawn.memory, kernels: drawn.kernels.slice(0, 18) };
  await hear(show({ drawn: { ...drawn, before, change: "kernels 18 → 19" } }));
  found("#tab-hlo").click();
  found("[title^=Compare]").click();
  assert.ok(!found("#page-graph").hidden, "that is where it is told");
  assert.match(found("aside").textContent, /kernels18→19launches9→144–151/);
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

test("kernels are listed, sorted and filtered, and what is chosen is chosen everywhere", async () => {
  await hear(show());
  const list = found(".kernel-list");
  assert.ok(!list.hidden);
  const rows = (): readonly HTMLElement[] => [...list.querySelectorAll<HTMLElement>(".row[data-kernel]")];
  const kernels = (): readonly number[] => rows().map((row) => Number(row.getAttribute("data-kernel")));
  assert.ok(rows().length >= 15, "those that are seen, and some more");
  const head = [...list.querySelectorAll<HTMLElement>(".heading button")].find((button) => button.title.startsWith("Estimated"));
  head?.click();
  const times = SHOWN.drawn.kernels.map((kernel, index) => ({ index, seconds: kernel.seconds ?? -1 }));
  times.sort((a, b) => b.seconds - a.seconds || a.index - b.index);
  assert.deepEqual(kernels(), times.slice(0, rows().length).map(({ index }) => index));
  const filter = found(".list-tools input") as HTMLInputElement;
  filter.value = "REDUCTION tanh";
  filter.dispatchEvent(new page.Event("input") as never);
  assert.deepEqual(kernels(), [6]);
  assert.match(found(".list-tools span").textContent, /^1 of 19 kernels · read .* · written .* · ≈ 63\.1 µs$/);
  rows()[0]?.click();
  await settled();
  assert.deepEqual(marked("chosen"), ["k6"]);
  assert.match(found("aside h2").textContent, /^7 /);
  assert.equal(last("reveal")?.type, "reveal");
});

test("a function is measured where its target is a device of the machine", async () => {
  const button = (): HTMLButtonElement => found(".tools .tool:first-child") as HTMLButtonElement;
  await hear(show());
  assert.ok(button().disabled);
  assert.equal(button().title, "cuda:h100 is not here to be measured");
  await hear(show({ measurable: true }));
  button().click();
  assert.deepEqual(last("measure"), { type: "measure" });
  await hear({ type: "measuring", measuring: true });
  assert.ok(button().disabled);
  assert.match(found("footer").textContent, /^measuring…/);
  await hear({ type: "measuring", measuring: false });
  assert.ok(!button().disabled);
});

test("measured times stand beside estimates", async () => {
  await hear(show({ drawn: measured(false), measurable: true }));
  assert.match(found("footer").textContent, / · 8 µs measured \(≈ 4\) · .* · median of 500 runs · /);
  const list = found(".kernel-list");
  assert.ok(list.classList.contains("measured"));
  const row = found("#kernel-row-0");
  assert.equal(row.querySelector(".column-5")?.textContent, "3 µs");
  assert.equal(row.querySelector(".column-6")?.textContent, "60%");
  assert.match(found(".list-tools span").textContent, / · 4 µs$/);
  row.click();
  await settled();
  assert.match(found("aside p").textContent, /3 µs measured \(≈ .*×\)$/);
  found("[title^=Copy]").click();
  const copied = last("copy");
  assert.ok(copied?.type === "copy");
  assert.match(copied.text, /\| lines \| time \|\n/);
  assert.match(copied.text, /\n\| 1 \|.*\| 3 µs \|\n/);
});

test("a measurement of an older text is marked, and its kernels have no times", async () => {
  await hear(show({ drawn: measured(true), measurable: true }));
  assert.match(found("footer").textContent, / · ~8 µs measured · /);
  assert.ok(!found(".kernel-list").classList.contains("measured"));
  const button = found(".tools .tool:first-child");
  assert.ok(button.classList.contains("news"));
  assert.match(button.title, /^Measure.* again$/);
});

test("HLO has its metadata on request", async () => {
  await hear(show(), { type: "content", kind: "hlo", content: TEXTS.hlo });
  found("#tab-hlo").click();
  assert.match(found("#page-hlo .text-area").textContent, /HloModule|ENTRY/);
  found("#page-hlo input").click();
  const message = last("content");
  assert.ok(message?.type === "content" && message.kind === "hlo-metadata");
});

test("the memory that is alive is a curve, with the expressions of what is alive at a kernel", async () => {
  await hear(show());
  found("#tab-memory").click();
  const { bytes, peakAt, peak } = live(SHOWN.drawn);
  assert.equal(bytes.length, SHOWN.drawn.kernels.length);
  const alive = (at: number): readonly Temporary[] =>
    SHOWN.drawn.temporaries.filter((each) => each.producer <= at && at <= Math.max(each.producer, ...each.consumers));
  assert.deepEqual(bytes, bytes.map((_, at) => alive(at).reduce((sum, each) => sum + each.value.bytes, 0)));
  const rows = (): readonly HTMLElement[] => [...app.element.querySelectorAll<HTMLElement>(".temporary")];
  assert.equal(rows().length, alive(peakAt).length);
  assert.match(found(".reading").textContent, new RegExp(`^kernel ${peakAt + 1} of 19: ${peak} B in ${alive(peakAt).length} temporaries, the peak`));
  key(found(".curve-frame"), "ArrowLeft");
  assert.equal(rows().length, alive(peakAt - 1).length);
  found(".memory-area input").click();
  assert.equal(rows().length, SHOWN.drawn.temporaries.length);
  assert.match(rows()[0]?.getAttribute("aria-label") ?? "", /^f32\[64\], 256 B, from kernel 8 to 6, 7, 10, 12, 13, jnp\.tanh\(m @ v\) \/ jnp\.sum\(v\), step › inner$/);
  rows()[0]?.click();
  const message = last("reveal");
  assert.ok(message?.type === "reveal");
  assert.equal(message.places[0]?.range.start.line, 9);
  // And from the source back.
  await hear({ type: "cursor", uri: URI, position: { line: 9, character: 26 } });
  assert.deepEqual(rows().filter((row) => row.classList.contains("lit")).map((row) => /kernel \d+/.exec(row.title)?.[0]), ["kernel 7"]);
});

test("memory that is not known yet has no figures", async () => {
  const { drawn } = SHOWN;
  const before = { launches: 9, launchesAtLeast: 9, launchesKnown: true, memory: drawn.memory, kernels: drawn.kernels.slice(0, 18) };
  await hear(show({ drawn: { ...drawn, before, memory: null, change: "kernels 18 → 19" } }));
  found("[title^=Compare]").click();
  assert.match(found("aside").textContent, /launches9→144–151(?!.*temporaries)/);
  found("#tab-memory").click();
  const cells = [...app.element.querySelectorAll(".memory-area .totals:first-of-type td:nth-child(2)")];
  assert.deepEqual([...new Set(cells.map((cell) => cell.textContent))], ["…"]);
});

const HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b]0;x\x07\u2066\u200b\ud800 [x](command:y) | ![i](http://evil.example) λ漢👩\u200d💻";
const SHOWN_HOSTILE = String.raw`<img src=x onerror=alert(1)>\u202e\x1b]0;x\x07\u2066\u200b\ud800 [x](command:y) | ![i](http://evil.example) λ漢👩${"\u200d"}💻`;

/** An answer in which every text is `HOSTILE`, but for what names something. */
function hostile<T>(value: T, key = ""): T {
  if (typeof value === "string") {
    const exact = ["uri", "path", "kind", "what", "endsAt", "equation"].includes(key) && !(key === "what" && value.length > 9);
    return (exact ? value : HOSTILE) as T;
  }
  if (Array.isArray(value)) {
    return value.map((each: unknown) => (key === "equations" && typeof each === "string" ? each : hostile(each, key))) as T;
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, hostile(each, name)])) as T;
  }
  return value;
}

test("text of a workspace is only text, and nothing of it is hidden", async () => {
  const shown = hostile(SHOWN);
  const content = { ...hostile(TEXTS.hlo), text: HOSTILE, links: [] };
  await hear({ type: "show", shown }, { type: "content", kind: "hlo", content });
  for (const tab of ["memory", "hlo", "source", "jaxpr", "graph"]) {
    found(`#tab-${tab}`).click();
    await hear({ type: "content", kind: "pretty", content }, { type: "content", kind: "jaxpr", content });
    assert.deepEqual([...app.element.querySelectorAll("img, a, script, iframe, [onerror]")], []);
    const texts = [app.element.textContent];
    for (const element of app.element.querySelectorAll("[title], [aria-label]")) {
      texts.push(element.getAttribute("title") ?? "", element.getAttribute("aria-label") ?? "");
    }
    for (const text of texts) {
      assert.doesNotMatch(text, /[\u202e\x1b\x07\u2066\u200b]|\p{Cs}/u, tab);
    }
  }
  assert.equal(found("h1").textContent, SHOWN_HOSTILE);
});

test("a saved graph is XML whatever is written in it", async () => {
  await hear({ type: "show", shown: hostile(SHOWN) });
  found(".tools .tool:last-child").click();
  const saved = sent.find((message) => message.type === "save");
  assert.ok(saved);
  assert.doesNotMatch(saved.svg, /<img|[\x1b\x07]|\p{Cs}/u);
});

test("the table that is copied has no markup of its texts", async () => {
  await hear({ type: "show", shown: hostile(SHOWN) });
  found(".tools [title^=Copy]").click();
  const copied = sent.find((message) => message.type === "copy");
  assert.ok(copied);
  for (const line of copied.text.split("\n")) {
    assert.doesNotMatch(line, /(?<!\\)<img|(?<!\\)\[x|(?<!\\)!|[\x1b\u202e]/u, line);
    assert.ok(!line.startsWith("| ") || line.startsWith("| |") || line.split(/(?<!\\)\|/).length === 9, line);
  }
});

test("a set is told back by its exact name", async () => {
  await hear(show({ sets: ["", HOSTILE], set: "" }));
  const select = found("select[aria-label='Example inputs']") as HTMLSelectElement;
  select.value = HOSTILE;
  select.dispatchEvent(new page.Event("change") as never);
  assert.deepEqual(sent.at(-1), { type: "chooseSet", set: HOSTILE });
});

const SWEPT: Swept = {
  suggested: "B=1..64",
  sizes: ["B", "D"],
  picture: {
    title: "f: temporary memory over B, h100",
    width: 720,
    height: 400,
    shapes: [
      { tag: "text", attributes: { class: "ink", x: "84", y: "22" }, text: "temporary memory" },
      { tag: "polyline", attributes: { points: "1,2 3,4", stroke: "#1a73e8" }, text: "" },
      { tag: "circle", attributes: { cx: "1", cy: "2", r: "3.5" }, text: "f: B=1: 1 KiB" },
    ],
  },
  columns: ["B", "kernels"],
  rows: [["1", "2"], ["2", "3"]],
  remarks: ["B=2: XLA makes 3 kernels of the same program, 2 with B=1: + loop fusion"],
  trouble: "",
};

test("a sweep is asked for with the suggested sizes, and drawn with its table", async () => {
  await hear(show());
  found("#tab-growth").click();
  found("#tab-growth").click();
  assert.deepEqual(sent.filter((message) => message.type === "sweep"), [{ type: "sweep", sizes: "", figure: "temp" }]);
  await hear({ type: "swept", swept: { ...SWEPT, picture: null, columns: [], rows: [], remarks: [] } });
  assert.equal((found(".sweep input") as HTMLInputElement).value, "B=1..64");
  assert.equal(app.element.querySelector("svg.growth"), null);
  found(".sweep").dispatchEvent(new page.Event("submit") as never);
  assert.deepEqual(sent.at(-1), { type: "sweep", sizes: "B=1..64", figure: "temp" });
  await hear({ type: "swept", swept: SWEPT });
  assert.equal(found("svg.growth polyline").getAttribute("points"), "1,2 3,4");
  assert.equal(found("svg.growth circle title").textContent, "f: B=1: 1 KiB");
  assert.equal(found(".growth-table tbody").textContent, "1223");
  assert.match(found(".growth-area").textContent, /XLA makes 3 kernels/);
});

test("a sweep that fails says why, and one of another function is gone", async () => {
  await hear(show());
  found("#tab-growth").click();
  await hear({ type: "swept", swept: { ...SWEPT, picture: null, trouble: "f has no size Q; it has B, D" } });
  assert.equal(found(".growth-area [role=status]").textContent, "f has no size Q; it has B, D");
  await hear({ type: "swept", swept: SWEPT }, show({ function: "other" }));
  assert.equal(app.element.querySelector("svg.growth"), null);
  assert.equal((found(".sweep input") as HTMLInputElement).value, "");
});

test("a sweep of an older text of the function says so", async () => {
  await hear(show());
  found("#tab-growth").click();
  const { drawn } = SHOWN;
  assert.ok(drawn);
  await hear({ type: "swept", swept: SWEPT }, show());
  assert.equal(found(".growth-area [role=status]").textContent, "");
  await hear(show({ drawn: { ...drawn, headline: "3 kernels" } }));
  assert.equal(found(".growth-area [role=status]").textContent, "The function has changed since it was swept.");
});

test("the texts of a sweep are only text", async () => {
  await hear(show());
  found("#tab-growth").click();
  await hear({ type: "swept", swept: { ...SWEPT, columns: [HOSTILE], rows: [[HOSTILE]], remarks: [HOSTILE] } });
  assert.deepEqual([...app.element.querySelectorAll(".growth-area img, .growth-area script, .growth-area [onerror]")], []);
  assert.doesNotMatch(found(".growth-area").textContent, /[\u202e\x1b\x07\u2066\u200b]|\p{Cs}/u);
});
