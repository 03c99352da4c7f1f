/** Where the memory goes: totals, and each temporary from the kernel that makes it to the last that reads it. */

import { h, on } from "./dom";
import type { Drawn, Memory, Temporary } from "./messages";
import { count, size } from "./words";

/** Temporaries that are listed, the largest first. */
const MOST = 300;

const TOTALS: readonly (readonly [keyof Memory, string])[] = [
  ["arguments", "arguments"],
  ["outputs", "outputs"],
  ["temporaries", "temporaries"],
  ["aliased", "aliased (donated)"],
  ["code", "code"],
  ["peak", "peak"],
];

export class MemoryView {
  readonly element = h("div", { class: "memory-area", tabindex: 0 });

  constructor(private readonly chosen: (kernels: readonly number[], focus: boolean) => void) {}

  show(drawn: Drawn | undefined): void {
    this.element.replaceChildren();
    if (drawn === undefined) {
      return;
    }
    if (drawn.devices > 1) {
      this.element.append(h("p", { class: "quiet" }, `Memory of one of ${drawn.devices} devices.`));
    }
    this.element.append(totals(drawn));
    const largest = [...drawn.temporaries].sort((a, b) => b.value.bytes - a.value.bytes);
    this.element.append(
      h("h2", {}, count(drawn.temporaries.length, "temporary", "temporaries")),
      h("p", { class: "quiet" }, "Arrays that one kernel writes for another. Each bar runs from the kernel that writes the array to the last kernel that reads it."),
      this.lifetimes(largest.slice(0, MOST), drawn),
    );
    if (largest.length > MOST) {
      this.element.append(h("p", { class: "quiet" }, `and ${largest.length - MOST} smaller ones`));
    }
    if (drawn.constants.length > 0) {
      this.element.append(h("h2", {}, count(drawn.constants.length, "constant")), constants(drawn));
    }
  }

  private lifetimes(temporaries: readonly Temporary[], drawn: Drawn): HTMLElement {
    const all = Math.max(1, drawn.kernels.length);
    const most = Math.max(1, ...temporaries.map((each) => each.value.bytes));
    const rows = temporaries.map((each) => {
      const last = Math.max(each.producer, ...each.consumers);
      const bar = h("span", { class: "bar" });
      bar.style.left = `${(100 * each.producer) / all}%`;
      bar.style.width = `${Math.max(0.8, (100 * (last + 1 - each.producer)) / all)}%`;
      bar.style.opacity = String(0.35 + (0.65 * each.value.bytes) / most);
      const readers = each.consumers.map((index) => index + 1).join(", ");
      const words = `${each.value.text}, ${size(each.value.bytes)}, from kernel ${each.producer + 1} to ${readers}`;
      const row = h(
        "button",
        { class: "temporary", type: "button", "aria-label": words, title: words },
        h("span", { class: "amount" }, size(each.value.bytes)),
        h("span", { class: "type" }, each.value.text),
        h("span", { class: "kernels" }, `${each.producer + 1} → ${readers}`),
        h("span", { class: "track" }, bar),
      );
      on(row, "click", (event) => {
        this.chosen([...new Set([each.producer, ...each.consumers])], event.ctrlKey || event.metaKey);
      });
      return row;
    });
    return h("div", { class: "temporaries" }, ...rows);
  }
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
