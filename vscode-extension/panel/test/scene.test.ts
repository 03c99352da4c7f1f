import assert from "node:assert/strict";
import { test } from "node:test";

import ELK, { type ELK as Elk } from "elkjs/lib/elk.bundled.js";

import { Window } from "happy-dom";

import { blocks } from "../src/blocks";
import { labels } from "../src/labels";
import { launchesOf } from "../src/launches";
import { Layouter, type PlacedNode, Superseded } from "../src/layout";
import type { Branch, Drawn, Edge, Group, Kernel, Parameter } from "../src/messages";
import { Model } from "../src/model";
import { Boxes, type SceneNode } from "../src/scene";
import { launchFigure } from "../src/words";
import { SHOWN, withKernels } from "./nested";

const METRICS = { character: 7.2, line: 17 };

function all(nodes: readonly SceneNode[]): readonly SceneNode[] {
  return nodes.flatMap((node) => [node, ...all(node.children)]);
}

function named(nodes: readonly SceneNode[], title: RegExp): SceneNode {
  const found = all(nodes).find((node) => title.test(node.title));
  assert.ok(found, String(title));
  return found;
}

test("loops and branches are boxes in each other, as they are in the program", () => {
  const { nodes } = new Boxes(new Model(SHOWN.drawn)).scene();
  const outer = named(nodes, /scan × 7/);
  const inner = named(outer.children, /scan × 3/);
  assert.deepEqual(inner.children.flatMap((node) => node.kernels), [4, 5, 6, 7, 8]);
  assert.deepEqual(named(outer.children, /branch 1 of 2/).kernels, [11]);
  assert.equal(all(nodes).filter((node) => node.kind === "kernel").length, SHOWN.drawn.kernels.length);
});

test("a kernel shows what the user wrote, why it ends, its launches and its time", () => {
  const { nodes } = new Boxes(new Model(SHOWN.drawn)).scene();
  const node = named(nodes, /^7 /);
  assert.equal(node.title, "7  input fusion (reduction) × 21");
  assert.deepEqual(node.sources, ["m @ v", "jnp.tanh(m @ v)"]);
  assert.equal(node.foot, "⊣ reduction  ·  ≈ 63.1 µs");
});

test("a collective shows its axes, its bytes and who asked for it", () => {
  const { drawn } = SHOWN;
  const collective = {
    kind: "all-reduce",
    bytes: 32 * 1024 * 1024,
    axes: ["data"],
    groups: [[0, 4]],
    inserted: true,
    async: false,
    scope: "over data",
  };
  const kernels = drawn.kernels.map((kernel, index) =>
    index === 0 ? { ...kernel, kind: "collective", what: "all-reduce", endsBecause: "collective", seconds: null, collective } : kernel,
  );
  const { nodes } = new Boxes(new Model({ ...drawn, kernels })).scene();
  const node = named(nodes, /^1 /);
  assert.equal(node.title, "1  ⇄ all-reduce over data");
  assert.equal(node.tone, "collective");
  assert.equal(node.foot, "32 MiB on each device, inserted");
});

test("a closed box stands for its kernels, and has their edges", () => {
  const boxes = new Boxes(new Model(SHOWN.drawn));
  boxes.toggle("loop0");
  const { nodes, edges } = boxes.scene();
  const box = named(nodes, /scan × 7/);
  assert.equal(box.kind, "closed");
  assert.equal(box.foot, "15 kernels · 140–147 launches · ≈ 441 µs");
  assert.ok(edges.some((edge) => edge.source === "loop0" && edge.target === "k18"));
  assert.ok(!edges.some((edge) => edge.source === edge.target));
});

test("a closed arm has the launches of that arm", () => {
  const boxes = new Boxes(new Model(SHOWN.drawn));
  boxes.close();
  boxes.toggle("loop0");
  const { nodes } = boxes.scene();
  assert.equal(named(nodes, /branch 1 of 2/).foot, "1 kernel · 7–14 launches · ≈ 42 µs");
  assert.equal(named(nodes, /branch 2 of 2/).foot, "1 kernel · 7 launches · ≈ 21 µs");
});

test("of conditionals within each other one arm of each is launched", () => {
  const [kernel] = SHOWN.drawn.kernels;
  const [branch] = SHOWN.drawn.branches;
  assert.ok(kernel && branch);
  const arm = (index: number, parent: number): Branch => ({ ...branch, arm: index, loop: -1, parent });
  const launched = (times: number, at: number): Kernel => ({ ...kernel, branch: at, launches: times, launchesAtLeast: times });
  const drawn = {
    ...SHOWN.drawn,
    loops: [],
    branches: [arm(0, -1), arm(1, -1), arm(0, 1), arm(1, 1)],
    kernels: [launched(2, 0), launched(1, 1), launched(5, 2), launched(9, 3)],
  };
  assert.equal(launchFigure(launchesOf(drawn, [0, 1, 2, 3], -1)), "2–10");
  assert.equal(launchFigure(launchesOf(drawn, [1, 2, 3], 1)), "6–10", "in the second arm of the outer one");
  assert.equal(launchFigure(launchesOf(drawn, [3], -1)), "0–9", "the other arms launch none of these");
});

test("of a loop of unknown length no more is shown than is known", () => {
  const { loops, kernels } = SHOWN.drawn;
  const drawn = {
    ...SHOWN.drawn,
    loops: loops.map((loop, index) => (index === 1 ? { ...loop, trips: null, waits: true } : loop)),
    kernels: kernels.map((kernel, index) => {
      const condition = index === 8;
      const figures = { launches: 7, launchesAtLeast: condition ? 7 : 0, launchesKnown: false, runsKnown: false };
      return kernel.loops.includes(1) ? { ...kernel, ...figures } : kernel;
    }),
  };
  const boxes = new Boxes(new Model(drawn));
  assert.equal(named(boxes.scene().nodes, /^5 /).title, "5  loop fusion × ?");
  boxes.toggle("loop1");
  const box = named(boxes.scene().nodes, /scan × \?/);
  assert.equal(box.title, "▸ scan × ?, each iteration waits for the host");
  assert.equal(box.foot, "5 kernels · ≥ 7 launches · ≥ 252 µs");
});

test("a copy shows what it is for, the condition of a counted loop that it is never launched", () => {
  const { nodes } = new Boxes(new Model(SHOWN.drawn)).scene();
  assert.deepEqual(named(nodes, /^1 /).sources, ["for jax.lax.scan(step, v, length=7)"]);
  const condition = named(nodes, /^9 /);
  assert.equal(condition.title, "9  loop fusion, never launched");
  assert.ok(!condition.foot.includes("≈"));
});

test("edges tell how many bytes pass, and each value once", () => {
  const { edges } = new Boxes(new Model(SHOWN.drawn)).scene();
  const edge = edges.find((each) => each.source === "parameter0");
  assert.deepEqual([edge?.target, edge?.label, edge?.values], ["k6", "16 KiB", ["f32[64,64]"]]);
});

test("two thousand kernels in a row begin as sections that can be seen at once", () => {
  const boxes = new Boxes(new Model(withKernels(2000)));
  const { nodes } = boxes.scene();
  assert.ok(nodes.length < 80, `${nodes.length} nodes`);
  const [first] = nodes.filter((node) => node.kind === "closed");
  assert.match(first?.title ?? "", /kernels 1–45/);
  assert.match(first?.brief.name ?? "", /^1–45/);
  boxes.toggle(first?.id ?? "");
  assert.equal(all(boxes.scene().nodes).filter((node) => node.kind === "kernel").length, 45);
});

test("what was opened stays open when the text was edited", () => {
  const before = new Boxes(new Model(withKernels(2000)));
  before.toggle("section45");
  const after = new Boxes(new Model(withKernels(1999)), before);
  assert.ok(!after.closed.has("section45"));
  assert.ok(after.closed.has("section90"));
});

test("an input that goes everywhere is left out, and that is said", () => {
  const drawn = withKernels(30);
  const edges = drawn.kernels.map((_, index) => ({
    source: { what: "parameter" as const, index: 0 },
    target: { what: "kernel" as const, index },
    value: { text: "f32[64,64]", bytes: 16384 },
  }));
  const scene = new Boxes(new Model({ ...drawn, edges: [...drawn.edges, ...edges] })).scene();
  assert.ok(!scene.nodes.some((node) => node.id === "parameter0"));
  assert.equal(scene.omitted, "1 input or output not drawn");
});

test("a box holds what is in it, and no two nodes overlap", async () => {
  const layout = await new Layouter(() => new ELK(), METRICS).layout(new Boxes(new Model(SHOWN.drawn)).scene());
  const placed = new Map(layout.nodes.map((each) => [each.node.id, each]));
  const holds = (outer: PlacedNode, inner: PlacedNode): boolean =>
    outer.x <= inner.x &&
    outer.y <= inner.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height;
  for (const outer of layout.nodes) {
    for (const child of outer.node.children) {
      const inner = placed.get(child.id);
      assert.ok(inner !== undefined && holds(outer, inner), `${child.id} in ${outer.node.id}`);
    }
  }
  const leaves = layout.nodes.filter((each) => each.node.kind !== "open");
  for (const one of leaves) {
    for (const other of leaves) {
      const apart =
        one.x + one.width <= other.x ||
        other.x + other.width <= one.x ||
        one.y + one.height <= other.y ||
        other.y + other.height <= one.y;
      assert.ok(one === other || apart, `${one.node.id} and ${other.node.id}`);
    }
  }
});

test("edges lead from their source to their target, those that go back too", async () => {
  const scene = new Boxes(new Model(SHOWN.drawn)).scene();
  const layout = await new Layouter(() => new ELK(), METRICS).layout(scene);
  const placed = new Map(layout.nodes.map((each) => [each.node.id, each]));
  assert.equal(layout.edges.length, scene.edges.length);
  for (const { edge, points } of layout.edges) {
    for (const [id, point] of [
      [edge.source, points[0]],
      [edge.target, points.at(-1)],
    ] as const) {
      const node = placed.get(id);
      assert.ok(node !== undefined && point !== undefined);
      const near = 1 + METRICS.line;
      assert.ok(point.x >= node.x - near && point.x <= node.x + node.width + near, `${edge.id} at ${id}`);
      assert.ok(point.y >= node.y - near && point.y <= node.y + node.height + near, `${edge.id} at ${id}`);
    }
  }
});

test("a layout that is no longer wanted is given up", async () => {
  let ended = 0;
  // In one process there is no worker to be ended.
  const start = (): Elk => Object.assign(new ELK(), { terminateWorker: () => ended++ });
  const layouter = new Layouter(start, METRICS);
  const first = layouter.layout(new Boxes(new Model(withKernels(60))).scene());
  const second = layouter.layout(new Boxes(new Model(SHOWN.drawn)).scene());
  await assert.rejects(first, Superseded);
  assert.ok((await second).nodes.length > 0);
  assert.equal(ended, 1);
});

/** A training step: kernels of two halves, whose layers are groups in each other, and of an optimizer. */
function training(layers: number, each: number): Drawn {
  const groups: Group[] = [];
  const add = (title: string, parent: number): number => groups.push({ title, parent, place: null }) - 1;
  const [kernel] = SHOWN.drawn.kernels;
  assert.ok(kernel);
  const kernels: Kernel[] = [];
  const inGroup = (group: number): void => {
    for (let made = 0; made < each; made++) {
      kernels.push({ ...kernel, loops: [], branch: -1, feeds: [], group, seconds: 1e-6, launches: 1, launchesAtLeast: 1, launchesKnown: true, runs: 1, runsKnown: true });
    }
  };
  for (const half of ["forward pass › loss", "backward pass › loss"]) {
    const around = add(half, -1);
    for (let layer = 1; layer <= layers; layer++) {
      const block = add(`block ${layer}/${layers}`, around);
      for (const part of ["attention", "mlp"]) {
        inGroup(add(part, block));
      }
    }
  }
  inGroup(add("adam", -1));
  const edges = kernels.slice(1).map((_, index): Edge => ({
    source: { what: "kernel", index },
    target: { what: "kernel", index: index + 1 },
    value: { text: "f32[64]", bytes: 256 },
  }));
  return { ...SHOWN.drawn, groups, kernels, edges, loops: [], branches: [], temporaries: [] };
}

test("kernels stand in the calls that created them, with sums on each, and few boxes are open at first", () => {
  const boxes = new Boxes(new Model(training(12, 10)));
  const { nodes } = boxes.scene();
  const forward = named(nodes, /forward pass/);
  assert.equal(forward.kind, "open");
  assert.deepEqual(forward.children.map(({ kernels }) => kernels.length), Array.from({ length: 12 }, () => 20));
  assert.ok(all(nodes).length <= 60);
  boxes.close();
  boxes.toggle(forward.id);
  const block = named(boxes.scene().nodes, /block 2\/12/);
  assert.equal(block.foot, "20 kernels · 20 launches · ≈ 20 µs");
  assert.match(block.sources[0] ?? "", /^read \d+ B · written \d+ B$/);
  boxes.enter(block.id);
  assert.deepEqual(boxes.scene().nodes.map(({ title }) => title), ["▸ attention", "▸ mlp"]);
  assert.deepEqual(boxes.around(boxes.entered).map(({ title }) => title), ["forward pass › loss", "block 2/12"]);
});

test("two thousand kernels are laid out at once, in each other and beside each other", async () => {
  const boxes = new Boxes(new Model(training(40, 12)));
  boxes.open();
  const scene = boxes.scene();
  const layouter = new Layouter(() => assert.fail("no layers for so many"), METRICS);
  const { nodes, width, height, isPacked } = await layouter.layout(scene);
  assert.ok(isPacked);
  assert.equal(nodes.filter(({ node }) => node.kind === "kernel").length, 40 * 4 * 12 + 12);
  const placed = new Map(nodes.map((each) => [each.node.id, each]));
  const within = (inner: PlacedNode, outer: { x: number; y: number; width: number; height: number }): boolean =>
    inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width && inner.y + inner.height <= outer.y + outer.height;
  const check = (siblings: readonly SceneNode[], outer: { x: number; y: number; width: number; height: number }): void => {
    const boxesOf = siblings.flatMap((node) => placed.get(node.id) ?? []);
    for (const [at, one] of boxesOf.entries()) {
      assert.ok(within(one, outer), one.node.title);
      for (const other of boxesOf.slice(at + 1)) {
        const apart = one.x + one.width <= other.x || other.x + other.width <= one.x || one.y + one.height <= other.y || other.y + other.height <= one.y;
        assert.ok(apart, `${one.node.title} and ${other.node.title}`);
      }
      check(one.node.children, one);
    }
  };
  check(scene.nodes, { x: 0, y: 0, width, height });
  assert.ok(width / height > 0.5 && width / height < 3, "about the shape of a screen");
});

test("from afar each box that is large enough says its name and its sums", () => {
  const page = new Window();
  Object.assign(globalThis, { document: page.document });
  const boxes = new Boxes(new Model(training(12, 10)));
  boxes.open();
  const { nodes, width, height } = blocks(boxes.scene(), METRICS);
  const drawing = { isDrawn: () => true, marks: () => [] };
  for (const scale of [0.5, 0.25, 0.1, Math.min(900 / width, 700 / height)]) {
    const texts = labels(nodes, drawing, scale).map((label) => label.textContent);
    assert.ok(texts.length > 0, `at ${scale}`);
    assert.ok(texts.every((text) => text.length > 3), `at ${scale}`);
  }
  const whole = labels(nodes, drawing, Math.min(900 / width, 700 / height)).map((label) => label.textContent);
  assert.ok(whole.some((text) => /^(block \d+\/12|attention|mlp|forward pass › loss).*≈/.test(text)), whole.join("; "));
});

test("seen from afar, a figure is there as a whole or not at all", () => {
  const model = new Model(withKernels(300));
  const boxes = new Boxes(model);
  const drawing = { isDrawn: () => true, marks: () => [] };
  const whole = /^(≈|≥) [\d.]+ (ns|µs|ms|s)$|^(read|written) (≥ )?[\d.]+ (B|KiB|MiB)$|^\d+ kernels?$/;
  let figures = 0;
  for (const change of ["open", "close"] as const) {
    boxes[change]();
    const { nodes } = blocks(boxes.scene(), METRICS);
    for (let scale = 0.03; scale < 0.6; scale *= 1.15) {
      for (const label of labels(nodes, drawing, scale)) {
        // The first part of a label is a name, as is a source in a kernel's.
        for (const text of [...label.querySelectorAll("text")].flatMap((line) => line.textContent.split(" · "))) {
          if (/^(read|written|≈|≥) /.test(text)) {
            assert.match(text, whole, `at ${scale}`);
            figures++;
          }
        }
      }
    }
  }
  assert.ok(figures > 100, `${figures} figures`);
});

test("the bytes of a box stand on two lines where one has no room for both", () => {
  const { nodes } = blocks(new Boxes(new Model(SHOWN.drawn)).scene(), METRICS);
  const box = nodes.find(({ node }) => node.kind === "open");
  assert.ok(box);
  const [read = "", written = ""] = box.node.brief.figures.slice(-2);
  const alone: PlacedNode = { ...box, node: { ...box.node, kind: "closed" }, width: (Math.max(read.length, written.length) + 1) * 6.6 + 8, height: 200 };
  const [label] = labels([alone], { isDrawn: () => true, marks: () => [] }, 1);
  const lines = [...(label?.querySelectorAll("text") ?? [])].map((line) => line.textContent);
  assert.deepEqual(lines.slice(-2), [read, written]);
});

test("a kernel's share of the time is that of all kernels, of each conditional one arm", () => {
  const model = new Model(SHOWN.drawn);
  const shares = SHOWN.drawn.kernels.map((_, index) => model.timeShare(index) ?? 0);
  assert.ok(shares.every((share) => share >= 0 && share <= 1));
  const straight = shares.filter((_, index) => model.kernel(index).branch < 0).reduce((sum, share) => sum + share, 0);
  assert.ok(straight > 0 && straight <= 1 + 1e-9, String(straight));
});

test("inputs have names, and many of them are drawn by argument", () => {
  const { drawn } = SHOWN;
  const parameter = (name: string): Parameter => ({ name, text: "f32[8]", bytes: 32 });
  const few = new Boxes(new Model({ ...drawn, parameters: [parameter("m"), parameter("v")] })).scene().nodes;
  assert.ok(few.some(({ title }) => title === "m: f32[8]"));
  const parameters = Array.from({ length: 40 }, (_, index) => parameter(index < 39 ? `params['blocks'][${index}]` : "tokens"));
  const edges = parameters.map((_, index): Edge => ({
    source: { what: "parameter", index },
    target: { what: "kernel", index: index % 3 },
    value: { text: "f32[8]", bytes: 32 },
  }));
  const model = new Model({ ...drawn, parameters, edges });
  const many = new Boxes(model).scene().nodes.filter(({ tone }) => tone === "input");
  assert.deepEqual(many.map(({ title }) => title), ["params: 39 arrays, 1.2 KiB", "tokens: f32[8]"]);
});
