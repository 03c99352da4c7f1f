import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { type Cursor, type Editor, Follower } from "../src/following";
import type { FromPanel, Shown, ToPanel } from "../src/messages";
import { SHOWN, TEXTS } from "./nested";

const URI = "file:///model.py";
/** Functions of seven lines each. */
const NAMES = ["f", "g"];

interface Request {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal | undefined;
}

let cursor: Cursor | undefined;
let requests: Request[] = [];
let executed: (readonly string[])[] = [];
let failures: unknown[] = [];
let told: ToPanel[] = [];
let left = 0;
let answer: (request: Request) => unknown;
let follower: Follower;

function shown(name: string): Shown {
  const line = 7 * NAMES.indexOf(name);
  const range = { start: { line, character: 0 }, end: { line: line + 6, character: 0 } };
  return { ...SHOWN, uri: URI, function: name, range, documents: { jaxpr: "jaxsight-jaxpr:x" } };
}

function at(line: number): Cursor {
  return { uri: URI, position: { line, character: 4 } };
}

function panel({ params }: Request): Shown | null {
  const { position, function: name } = params as { position?: { line: number }; function?: string };
  const found = name ?? NAMES[Math.floor((position?.line ?? -1) / 7)];
  return found === undefined ? null : shown(found);
}

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  [cursor, requests, executed, failures, told, left] = [undefined, [], [], [], [], 0];
  answer = panel;
  const editor: Editor = {
    cursor: () => cursor,
    request: async (method, params, signal) => {
      const request = { method, params: params as Request["params"], signal };
      requests.push(request);
      return (await answer(request)) as never;
    },
    execute: (...command) => {
      executed.push(command);
      return Promise.resolve();
    },
    same: (one, other) => decodeURIComponent(one) === decodeURIComponent(other),
    left: () => {
      left += 1;
    },
    failed: (error) => {
      failures.push(error);
    },
  };
  follower = new Follower(editor, (message) => {
    told.push(message);
  });
});

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

async function hear(...messages: FromPanel[]): Promise<void> {
  for (const message of messages) {
    await follower.hear(message);
    await settled();
  }
}

async function moved(line: number, rest = 150): Promise<void> {
  const moved = (cursor = at(line));
  follower.moved(() => moved);
  mock.timers.tick(rest);
  await settled();
}

function functions(): readonly (string | undefined)[] {
  return told.flatMap((message) => (message.type === "show" ? [message.shown?.function] : []));
}

function last<Type extends ToPanel["type"]>(type: Type): ToPanel & { readonly type: Type } {
  const found = told.findLast((message) => message.type === type);
  assert(found !== undefined);
  return found as ToPanel & { readonly type: Type };
}

test("a panel that is ready gets its state, the cursor and the function around it", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  const busy = (on: boolean): ToPanel => ({ type: "busy", busy: on });
  assert.deepEqual(told, [
    { type: "following", following: { pinned: false, paused: false } },
    { type: "show", shown: null },
    { type: "cursor", ...at(3) },
    busy(true),
    { type: "show", shown: shown("f") },
    busy(false),
  ]);
});

test("it follows the cursor once that rests in another function", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  const before = requests.length;
  await moved(4);
  assert.equal(requests.length, before, "it is inside");
  await moved(8, 100);
  assert.equal(requests.length, before, "it does not rest");
  await moved(9);
  assert.deepEqual(last("cursor").position, at(9).position);
  assert.deepEqual(functions(), [undefined, "f", "g"]);
  assert.equal(left, 2);
});

test("other spellings of a URI are the same document", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  follower.moved(() => ({ ...at(4), uri: "file:///mode%6C.py" }));
  mock.timers.tick(150);
  assert.equal(requests.length, 1);
});

for (const state of ["pinned", "paused"] as const) {
  test(`a ${state} panel stays with its function`, async () => {
    cursor = at(3);
    await hear({ type: "ready" }, { type: "follow", following: { pinned: false, paused: false, [state]: true } });
    await moved(9);
    assert.deepEqual(last("cursor").position, at(9).position);
    follower.refreshed(() => true);
    await settled();
    assert(!functions().includes("g"));
    await hear({ type: "follow", following: { pinned: false, paused: false } });
    assert.equal(functions().at(-1), "g");
  });
}

test("a paused panel asks for nothing new, and a pinned one does", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  await hear({ type: "follow", following: { pinned: false, paused: true } });
  follower.refreshed(() => true);
  assert.equal(requests.length, 1);
  await hear({ type: "follow", following: { pinned: true, paused: false } });
  assert.deepEqual(requests.at(-1)?.params, { uri: URI, function: "f" });
});

test("the function that is shown stays where there is none at the cursor", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  await moved(100);
  follower.again();
  await settled();
  assert.deepEqual(requests.at(-1)?.params, { uri: URI, function: "f" });
  assert.equal(functions().at(-1), "f");
});

test("new answers are shown, if they are about the file", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  follower.refreshed((uri) => uri !== URI);
  assert.equal(requests.length, 1);
  follower.refreshed((uri) => uri === URI);
  assert.equal(requests.length, 2);
});

test("a panel begins with the function of before a reload", async () => {
  follower.restore({ uri: URI, function: "g", pinned: true, paused: false });
  cursor = at(3);
  await hear({ type: "ready" });
  assert.deepEqual(last("following").following, { pinned: true, paused: false });
  assert.deepEqual(functions(), [undefined, "g"]);
  assert.equal(requests.length, 1);
});

test("what was asked before is given up, and its answer is not shown", async () => {
  const waiting: (() => void)[] = [];
  answer = async (request) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return panel(request);
  };
  await moved(3);
  await moved(9);
  assert.deepEqual(requests.map(({ signal }) => signal?.aborted), [true, false]);
  waiting.forEach((resolve) => {
    resolve();
  });
  await settled();
  assert.deepEqual(functions(), ["g"]);
  assert.deepEqual(last("busy"), { type: "busy", busy: false });
  follower.rest();
  assert.deepEqual(requests.map(({ signal }) => signal?.aborted), [true, true]);
});

test("a request that fails ends the wait, unless it was given up", async () => {
  answer = () => Promise.reject(new Error("lost"));
  await moved(3);
  assert.deepEqual(last("busy"), { type: "busy", busy: false });
  assert.equal(failures.length, 1);
  await moved(9, 150);
  follower.rest();
  assert.equal(failures.length, 2);
});

test("targets and inputs are chosen by the server's commands, and asked for again", async () => {
  cursor = at(3);
  await hear({ type: "chooseTarget", target: "cuda:h100" });
  assert.deepEqual(executed, [], "nothing is shown");
  await hear({ type: "ready" }, { type: "chooseSet", set: "decode" }, { type: "chooseTarget", target: "cuda:h100" });
  assert.deepEqual(executed, [
    ["jaxsight.chooseSet", URI, "f", "decode"],
    ["jaxsight.chooseTarget", "cuda:h100", URI],
  ]);
  assert.equal(requests.length, 3);
});

test("a measurement is shown while it runs", async () => {
  cursor = at(3);
  await hear({ type: "ready" }, { type: "measure" });
  assert.deepEqual(executed, [["jaxsight.measure", URI, "f", "wait"]]);
  assert.deepEqual(told.slice(-2), [
    { type: "measuring", measuring: true },
    { type: "measuring", measuring: false },
  ]);
});

test("a sweep is of the function that is shown, and given up with it", async () => {
  cursor = at(3);
  await hear({ type: "ready" }, { type: "sweep", sizes: "B=1..8", figure: "temp" });
  const { method, params, signal } = requests.at(-1) as Request;
  assert.deepEqual([method, params], ["jaxsight/sweep", { uri: URI, function: "f", sizes: "B=1..8", figure: "temp" }]);
  assert.equal(last("swept").type, "swept");
  await moved(9);
  assert.equal(signal?.aborted, true);
});

test("a text is asked for by the URI of its document", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  answer = () => TEXTS.jaxpr;
  await hear({ type: "content", kind: "jaxpr" }, { type: "content", kind: "hlo" });
  assert.deepEqual(requests.at(-1)?.params, { uri: "jaxsight-jaxpr:x" });
  assert.deepEqual(last("content").content, TEXTS.jaxpr);
});

test("a text that cannot be made says why in its tab", async () => {
  cursor = at(3);
  await hear({ type: "ready" });
  answer = () => Promise.reject(new Error("no operation\nof this name"));
  await assert.rejects(follower.hear({ type: "content", kind: "jaxpr" }));
  assert.equal(last("content").content.text, "# cannot be shown: no operation\\nof this name\n");
});
