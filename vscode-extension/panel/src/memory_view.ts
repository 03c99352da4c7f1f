/** Where the memory goes: totals, what is alive while each kernel runs, and each temporary with its expression. */

import { h, on, s, set, write } from "./dom";
import { lastReader, type Live, live, liveAt } from "./live";
import type { Drawn, Memory, Place, Temporary } from "./messages";
import type { Model } from "./model";
import { count, short, size } from "./words";

/** Temporaries that are listed, the largest first. */
const MOST = 300;
/** Height of the curve in its own units; its width is one for each kernel. */
const HIGH = 100;
/** Characters of an expression. */
const LONGEST = 200;

const TOTALS: readonly (readonly [keyof Memory, string])[] = [
  ["arguments", "arguments"],
  ["outputs", "outputs"],
  ["temporaries", "temporaries"],
  ["aliased", "aliased (donated)"],
  ["code", "code"],
  ["peak", "peak"],
];

export interface MemoryEvents {
  /** Kernels that write or read a temporary were chosen, and where its expression is. */
  chosen(kernels: readonly number[], places: readonly Place[], focus: boolean): void;
}

export class MemoryView {
  readonly element = h("div", { class: "memory-area", tabindex: 0 });
  private readonly reading = h("p", { class: "reading", role: "status" });
  private readonly marker = s("line", { class: "marker", y1: 0, y2: HIGH });
  private readonly spans = s("g", { class: "spans" });
  private readonly list = h("div", { class: "temporaries" });
  private readonly every = h("input", { type: "checkbox" });
  private model: Model | undefined;
  private live: Live | undefined;
  /** The kernel whose temporaries are listed. */
  private at = 0;
  private lit: ReadonlySet<Temporary> = new Set();
  private rows: readonly { readonly temporary: Temporary; readonly element: HTMLElement }[] = [];

  constructor(private readonly events: MemoryEvents) {
    on(this.every, "change", () => {
      this.tell(this.at);
      this.fill();
    });
  }

  show(model: Model | undefined): void {
    this.element.replaceChildren();
    this.model = model;
    this.lit = new Set();
    if (model === undefined) {
      return;
    }
    const { drawn } = model;
    this.live = live(drawn);
    this.at = this.live.peakAt;
    this.every.checked = false;
    if (drawn.devices > 1) {
      this.element.append(h("p", { class: "quiet" }, `Memory of one of ${drawn.devices} devices.`));
    }
    this.element.append(totals(drawn));
    if (drawn.temporaries.length > 0) {
      this.element.append(
        h("h2", {}, "live temporaries"),
        this.curve(drawn, this.live),
        this.reading,
        h("p", { class: "quiet" }, basis(drawn)),
        h("label", {}, this.every, ` list all ${count(drawn.temporaries.length, "temporary", "temporaries")}`),
        this.list,
      );
      this.tell(this.at);
      this.fill();
    }
    if (drawn.constants.length > 0) {
      this.element.append(h("h2", {}, count(drawn.constants.length, "constant")), constants(drawn));
    }
  }

  /** Marks the temporaries of the expression at the cursor: those that it is, else those that its kernels write. */
  light(paths: ReadonlySet<string>, kernels: readonly number[]): void {
    const { model } = this;
    if (model === undefined) {
      return;
    }
    const all = model.drawn.temporaries;
    const own = all.filter((each) => paths.has(each.equation));
    const lit = own.length > 0 ? own : all.filter((each) => kernels.includes(each.producer));
    this.lit = new Set(lit);
    this.spans.replaceChildren(
      ...lit.map((each) => s("rect", { x: each.producer, y: 0, width: lastReader(each) + 1 - each.producer, height: HIGH })),
    );
    this.markRows();
    this.rows.find(({ temporary }) => this.lit.has(temporary))?.element.scrollIntoView({ block: "nearest" });
  }

  private markRows(): void {
    for (const { temporary, element } of this.rows) {
      element.classList.toggle("lit", this.lit.has(temporary));
    }
  }

  /** Lists what is alive while a kernel runs. */
  goTo(kernel: number): void {
    if (this.model !== undefined && kernel !== this.at) {
      this.at = kernel;
      this.tell(kernel);
      this.fill();
    }
  }

  private curve({ kernels }: Drawn, { bytes, peak }: Live): HTMLElement {
    const steps = bytes.map((amount, index) => {
      const y = HIGH - (HIGH * amount) / Math.max(1, peak);
      return `L${index},${y} L${index + 1},${y}`;
    });
    const words = "Bytes of live temporaries by kernel. Arrow keys move along the schedule, Enter goes to the source.";
    const drawing = s(
      "svg",
      { class: "curve", viewBox: `0 0 ${Math.max(1, kernels.length)} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      s("path", { d: `M0,${HIGH} ${steps.join(" ")} L${kernels.length},${HIGH} Z` }),
      this.spans,
      this.marker,
    );
    const frame = h("div", { class: "curve-frame", tabindex: 0, role: "slider", "aria-label": words, "aria-valuemin": 1, "aria-valuemax": kernels.length });
    frame.append(h("span", { class: "most" }, size(peak)), drawing);
    const under = (event: MouseEvent): number => {
      const box = drawing.getBoundingClientRect();
      const kernel = Math.floor((kernels.length * (event.clientX - box.left)) / Math.max(1, box.width));
      return Math.max(0, Math.min(kernels.length - 1, kernel));
    };
    on(frame, "pointermove", (event) => {
      this.tell(under(event));
    });
    on(frame, "pointerleave", () => {
      this.tell(this.at);
    });
    on(frame, "click", (event) => {
      this.goTo(under(event));
      this.events.chosen([this.at], this.model?.placesOf(this.at) ?? [], event.ctrlKey || event.metaKey);
    });
    on(frame, "keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step !== 0 || event.key === "Enter") {
        this.goTo(Math.max(0, Math.min(kernels.length - 1, this.at + step)));
        this.events.chosen([this.at], this.model?.placesOf(this.at) ?? [], event.key === "Enter");
        event.preventDefault();
      }
    });
    return frame;
  }

  /** Says what is alive while a kernel runs. */
  private tell(kernel: number): void {
    const { model } = this;
    if (model === undefined || model.drawn.kernels.length === 0) {
      return;
    }
    const alive = liveAt(model.drawn, kernel);
    const amount = size(this.live?.bytes[kernel] ?? 0);
    const expression = short(model.expression(kernel), LONGEST);
    const peak = kernel === this.live?.peakAt ? ", the peak" : "";
    const words = `kernel ${kernel + 1} of ${model.drawn.kernels.length}: ${amount} in ${count(alive.length, "temporary", "temporaries")}${peak}`;
    write(this.reading, expression === "" ? words : `${words} · ${expression}`);
    set(this.marker, "x1", String(kernel + 0.5));
    set(this.marker, "x2", String(kernel + 0.5));
    const frame = this.element.querySelector(".curve-frame");
    if (frame !== null) {
      set(frame, "aria-valuenow", String(kernel + 1));
      set(frame, "aria-valuetext", words);
    }
  }

  private fill(): void {
    const { model } = this;
    if (model === undefined) {
      return;
    }
    const { drawn } = model;
    const listed = this.every.checked ? [...drawn.temporaries].sort((a, b) => b.value.bytes - a.value.bytes) : liveAt(drawn, this.at);
    this.rows = listed.slice(0, MOST).map((temporary) => ({ temporary, element: this.row(model, temporary) }));
    const more = listed.length - this.rows.length;
    this.list.replaceChildren(...this.rows.map(({ element }) => element), ...(more > 0 ? [h("p", { class: "quiet" }, `and ${more} smaller ones`)] : []));
    this.markRows();
  }

  private row(model: Model, each: Temporary): HTMLElement {
    const all = Math.max(1, model.drawn.kernels.length);
    const last = lastReader(each);
    const bar = h("span", { class: "bar" });
    bar.style.left = `${(100 * each.producer) / all}%`;
    bar.style.width = `${Math.max(0.8, (100 * (last + 1 - each.producer)) / all)}%`;
    const equation = model.equation(each.equation);
    const expression = equation === undefined ? model.expression(each.producer) : equation.text || equation.primitive;
    const readers = each.consumers.map((index) => index + 1).join(", ");
    const words = [
      `${each.value.text}, ${size(each.value.bytes)}, from kernel ${each.producer + 1} to ${readers}`,
      expression,
      model.groupName(each.producer),
    ];
    const row = h(
      "button",
      { class: "temporary", type: "button", "aria-label": words.join(", "), title: words.join("\n") },
      h("span", { class: "amount" }, size(each.value.bytes)),
      h("span", { class: "type" }, each.value.text),
      h("span", { class: "written" }, short(expression, LONGEST)),
      h("span", { class: "kernels" }, `${each.producer + 1} → ${last + 1}`),
      h("span", { class: "track" }, bar),
    );
    on(row, "click", (event) => {
      const place = equation?.place ?? null;
      const places = place !== null ? [place] : model.placesOf(each.producer);
      this.events.chosen([...new Set([each.producer, ...each.consumers])], places, event.ctrlKey || event.metaKey);
    });
    return row;
  }
}

/** What the curve is made from, and what it is not. */
function basis({ assigned, assignedAtMost, loops }: Drawn): string {
  const known = assigned === null ? "XLA has not assigned buffers yet" : assigned < 0 ? "" : `XLA assigned ${size(assigned)} in all${tuned(assigned, assignedAtMost)}`;
  return [
    "An estimate: sizes of the arrays that kernels pass to each other, in the order of the schedule",
    loops.length > 0 ? "each loop's kernels once" : "",
    "arrays may share a buffer, and buffers may be padded",
    known,
  ]
    .filter((part) => part !== "")
    .join("; ");
}

/** What autotuning on the device may add: `, up to 32 MiB on the device`. */
function tuned(assigned: number, most: number | null): string {
  if (most === null || most === assigned) {
    return "";
  }
  return most < 0 ? ", and workspaces of unknown size on the device" : `, up to ${size(most)} on the device`;
}

function totals(drawn: Drawn): HTMLElement {
  const before = drawn.before?.memory;
  const rows = TOTALS.map(([key, words]) => {
    const now = drawn.memory?.[key];
    const was = before?.[key];
    const changed = was !== undefined && now !== undefined && was !== now;
    return h(
      "tr",
      { class: changed && "changed" },
      h("th", { scope: "row" }, words),
      h("td", {}, now === undefined ? "…" : size(now)),
      h("td", {}, changed ? `was ${size(was)}` : ""),
    );
  });
  return h("table", { class: "totals" }, h("tbody", {}, ...rows));
}

function constants(drawn: Drawn): HTMLElement {
  const rows = [...drawn.constants]
    .sort((a, b) => b.value.bytes - a.value.bytes)
    .slice(0, MOST)
    .map((each) =>
      h(
        "tr",
        {},
        h("td", {}, size(each.value.bytes)),
        h("td", {}, each.value.text),
        h("td", {}, each.folded ? "folded at compile time" : "captured"),
      ),
    );
  return h("table", { class: "totals" }, h("tbody", {}, ...rows));
}
