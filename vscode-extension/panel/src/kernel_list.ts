/** The kernels as a table that is sorted, filtered and walked through; of thousands of rows only those that are seen are elements. */

import { h, on, set, write } from "./dom";
import { bytesOf, figuresOf } from "./launches";
import type { Kernel } from "./messages";
import type { Model } from "./model";
import { titled } from "./scene";
import { count, duration, flops, launchFigure, size } from "./words";

export interface ListEvents {
  /** A row was chosen; `focus`: the source is to be gone to. */
  chosen(kernel: number, focus: boolean): void;
}

interface Column {
  readonly name: string;
  readonly words: string;
  readonly text: (model: Model, index: number) => string;
  /** What rows are sorted by; the texts are, where it is missing. */
  readonly amount?: (model: Model, index: number) => number;
}

export const COLUMNS: readonly Column[] = [
  { name: "#", words: "Position in the schedule", text: (_, index) => String(index + 1), amount: (_, index) => index },
  { name: "kernel", words: "Kernel, and the expression at its fusion boundary", text: (model, index) => `${titled(model.kernel(index))}  ${model.expression(index)}` },
  { name: "group", words: "The calls that created it", text: (model, index) => model.groupName(index).split(" › ").slice(-NAMED).join(" › ") },
  { name: "line", words: "First line in the source", text: (model, index) => lines(model, index), amount: (model, index) => firstLine(model, index) },
  { name: "≈ time", words: "Estimated time of all launches", ...amount((kernel) => kernel.seconds ?? -1, (seconds) => (seconds < 0 ? "" : duration(seconds))) },
  { name: "time", words: "Measured time of all launches", ...amount((kernel) => kernel.measured ?? -1, (seconds) => (seconds < 0 ? "" : duration(seconds))) },
  {
    name: "share",
    words: "Share of the time of all kernels: of the measured one where there is one",
    text: (model, index) => percent(model.timeShare(index)),
    amount: (model, index) => model.timeShare(index) ?? -1,
  },
  { name: "read", words: "Bytes read by one execution", ...amount((kernel) => bytesOf(kernel.inputs), size) },
  { name: "written", words: "Bytes written by one execution", ...amount((kernel) => bytesOf(kernel.outputs), size) },
  { name: "flop", words: "Floating-point operations of one execution", ...amount((kernel) => kernel.flops, (number) => (number > 0 ? flops(number) : "")) },
  { name: "×", words: "Launches in one run", ...amount((kernel) => kernel.launches, String), text: (model, index) => launchesOf(model.kernel(index)) },
];

/** Innermost calls that a row names. */
const NAMED = 2;
/** Rows that are there beyond those that are seen. */
const MORE = 15;

export class KernelList {
  readonly element = h("section", { class: "kernel-list", "aria-label": "Kernels" });
  private readonly filter = h("input", { type: "search", placeholder: "Filter: kernel, group, expression", "aria-label": "Filter kernels" });
  private readonly total = h("span", { class: "quiet", role: "status" });
  private readonly heads: readonly HTMLButtonElement[];
  private readonly body = h("div", { class: "rows", tabindex: 0, role: "listbox", "aria-label": "Kernels" });
  private readonly spacer = h("div", { class: "spacer" });
  private readonly drawn = new Map<number, HTMLElement>();
  private model: Model | undefined;
  /** The kernels that can be shown: those of the box that was entered. */
  private within: readonly number[] = [];
  private shown: readonly number[] = [];
  private texts: readonly string[] = [];
  private sorting: { readonly column: number; readonly down: boolean } = { column: 0, down: false };
  private lit: ReadonlySet<number> = new Set();
  private chosen: ReadonlySet<number> = new Set();

  constructor(
    private readonly height: number,
    private readonly events: ListEvents,
    private readonly ids = "",
  ) {
    this.heads = COLUMNS.map(({ name, words }, column) => {
      const head = h("button", { type: "button", title: words, class: `column-${column}` }, name);
      on(head, "click", () => {
        // Amounts are of interest from the largest on.
        const first = column !== 0 && COLUMNS[column]?.amount !== undefined && name !== "line";
        this.sorting = { column, down: this.sorting.column === column ? !this.sorting.down : first };
        this.arrange();
      });
      return head;
    });
    const heading = h("div", { class: "row heading" });
    heading.append(...this.heads);
    const tools = h("div", { class: "list-tools" });
    tools.append(this.filter, this.total);
    this.body.append(this.spacer);
    const table = h("div", { class: "table" });
    table.append(heading, this.body);
    this.element.append(tools, table);
    on(this.filter, "input", () => {
      this.arrange();
    });
    on(this.body, "scroll", () => {
      this.draw();
    });
    on(this.body, "click", (event) => {
      const row = event.target instanceof Element ? event.target.closest("[data-kernel]") : null;
      if (row !== null) {
        this.events.chosen(Number(row.getAttribute("data-kernel")), event.ctrlKey || event.metaKey);
      }
    });
    on(this.body, "dblclick", (event) => {
      const row = event.target instanceof Element ? event.target.closest("[data-kernel]") : null;
      if (row !== null) {
        this.events.chosen(Number(row.getAttribute("data-kernel")), true);
      }
    });
    on(this.body, "keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) {
        event.preventDefault();
      }
    });
    if (typeof ResizeObserver !== "undefined") {
      new ResizeObserver(() => {
        this.draw();
      }).observe(this.body);
    }
  }

  show(model: Model | undefined): void {
    this.model = model;
    const all = model?.drawn.kernels ?? [];
    this.element.classList.toggle("measured", model?.measured === true);
    this.texts = all.map((_, index) =>
      model === undefined ? "" : [titled(model.kernel(index)), model.groupName(index), ...model.sources(index)].join(" ").toLowerCase(),
    );
    this.lit = new Set();
    this.chosen = new Set();
    this.limit(all.map((_, index) => index));
  }

  /** Only these kernels can be shown: those of a box. */
  limit(kernels: readonly number[]): void {
    this.within = kernels;
    this.arrange();
  }

  light(kernels: readonly number[]): void {
    this.lit = new Set(kernels);
    this.reveal(kernels);
  }

  choose(kernels: readonly number[]): void {
    this.chosen = new Set(kernels);
    this.reveal(kernels);
  }

  private arrange(): void {
    const { model } = this;
    const wanted = this.filter.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const kept = this.within.filter((index) => wanted.every((word) => this.texts[index]?.includes(word) === true));
    const column = COLUMNS[this.sorting.column];
    if (model !== undefined && column !== undefined) {
      const sign = this.sorting.down ? -1 : 1;
      const { amount, text } = column;
      const compared = (a: number, b: number): number =>
        amount === undefined ? text(model, a).localeCompare(text(model, b)) : amount(model, a) - amount(model, b);
      kept.sort((a, b) => sign * compared(a, b) || a - b);
    }
    this.shown = kept;
    this.heads.forEach((head, at) => {
      const here = at === this.sorting.column;
      const { name = "", words = "" } = COLUMNS[at] ?? {};
      set(head, "aria-label", here ? `${name}, sorted, ${this.sorting.down ? "largest" : "smallest"} first: ${words}` : `${name}: ${words}`);
      write(head, (COLUMNS[at]?.name ?? "") + (here ? (this.sorting.down ? " ▾" : " ▴") : ""));
    });
    write(this.total, this.summary());
    this.spacer.style.height = `${kept.length * this.height}px`;
    this.clear();
    this.draw();
  }

  /** `40 of 315 kernels · read 4 MiB · written 2 MiB · ≈ 120 µs` */
  private summary(): string {
    const { model, shown } = this;
    if (model === undefined) {
      return "";
    }
    const all = model.drawn.kernels.length;
    const { read, written, seconds, bytesSign, timeSign } = figuresOf(model.drawn, shown);
    const time = seconds === null ? [] : [`${timeSign}${duration(seconds)}`];
    const number = shown.length === all ? count(all, "kernel") : `${shown.length} of ${count(all, "kernel")}`;
    return [number, `read ${bytesSign}${size(read)}`, `written ${bytesSign}${size(written)}`, ...time].join(" · ");
  }

  private key(key: string): boolean {
    const at = this.shown.findIndex((index) => this.chosen.has(index));
    const page = Math.max(1, Math.floor(this.body.clientHeight / this.height) - 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.shown.length,
      End: this.shown.length,
      Enter: 0,
    };
    const step = steps[key];
    if (step === undefined) {
      return false;
    }
    const next = this.shown[Math.max(0, Math.min(this.shown.length - 1, (at < 0 && step > 0 ? -1 : Math.max(0, at)) + step))];
    if (next !== undefined) {
      this.events.chosen(next, key === "Enter");
    }
    return true;
  }

  /** The first of some kernels comes into view where none is. */
  private reveal(kernels: readonly number[]): void {
    const wanted = new Set(kernels);
    const { scrollTop, clientHeight } = this.body;
    const rows = this.shown.flatMap((index, row) => (wanted.has(index) ? [row * this.height] : []));
    const [first] = rows;
    if (first !== undefined && clientHeight > 0 && !rows.some((top) => top >= scrollTop && top + this.height <= scrollTop + clientHeight)) {
      this.body.scrollTop = Math.max(0, first - clientHeight / 3);
    }
    this.draw();
    for (const [row, element] of this.drawn) {
      this.mark(element, this.shown[row]);
    }
  }

  private clear(): void {
    this.drawn.forEach((element) => {
      element.remove();
    });
    this.drawn.clear();
  }

  private draw(): void {
    const { scrollTop, clientHeight } = this.body;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - MORE);
    const last = Math.min(this.shown.length, Math.ceil((scrollTop + clientHeight) / this.height) + MORE);
    for (const [row, element] of this.drawn) {
      if (row < first || row >= last) {
        element.remove();
        this.drawn.delete(row);
      }
    }
    for (let row = first; row < last; row++) {
      const kernel = this.shown[row];
      if (!this.drawn.has(row) && kernel !== undefined && this.model !== undefined) {
        const element = this.row(this.model, kernel, row);
        this.drawn.set(row, element);
        this.spacer.append(element);
      }
    }
  }

  private row(model: Model, kernel: number, row: number): HTMLElement {
    const { kind } = model.kernel(kernel);
    const titles: Readonly<Record<string, string>> = {
      kernel: [titled(model.kernel(kernel)), ...model.sources(kernel)].join("\n"),
      group: model.groupName(kernel),
    };
    const cells = COLUMNS.map(({ name, text }, column) => {
      const words = text(model, kernel);
      return h("span", { class: `column-${column}`, title: titles[name] ?? words }, words);
    });
    const element = h("div", { class: `row tone-${kind.replace(/\W+/g, "-")}`, role: "option", id: `${this.ids}kernel-row-${kernel}`, "data-kernel": kernel }, ...cells);
    element.style.top = `${row * this.height}px`;
    element.style.setProperty("--share", `${100 * (model.timeShare(kernel) ?? 0)}%`);
    this.mark(element, kernel);
    return element;
  }

  private mark(element: HTMLElement, kernel: number | undefined): void {
    const chosen = kernel !== undefined && this.chosen.has(kernel);
    element.classList.toggle("chosen", chosen);
    element.classList.toggle("lit", kernel !== undefined && this.lit.has(kernel));
    element.setAttribute("aria-selected", String(chosen));
  }
}

function amount(of: (kernel: Kernel) => number, words: (amount: number) => string): Pick<Column, "text"> & Required<Pick<Column, "amount">> {
  return {
    text: (model, index) => words(of(model.kernel(index))),
    amount: (model, index) => of(model.kernel(index)),
  };
}

/** `4.2%`, `< 0.1%`; empty where the time is not known. */
function percent(share: number | undefined): string {
  if (share === undefined) {
    return "";
  }
  return share > 0 && share < 0.001 ? "< 0.1%" : `${Number((100 * share).toFixed(1))}%`;
}

function launchesOf(kernel: Kernel): string {
  return kernel.launchesKnown ? launchFigure(kernel) : "?";
}

function lines(model: Model, index: number): string {
  const own = model.linesOf(index);
  const fed = model.fedLines(index);
  return own.length > 0 ? own.join(", ") : fed.length > 0 ? `for ${fed.join(", ")}` : "";
}

function firstLine(model: Model, index: number): number {
  return model.linesOf(index)[0] ?? model.fedLines(index)[0] ?? Infinity;
}
