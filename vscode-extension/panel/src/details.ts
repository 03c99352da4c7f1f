/** What is known of the chosen kernel, and what changed since the file was saved. */

import type { Difference } from "./diff";
import { h, on } from "./dom";
import type { Drawn, Equation, Kernel, KernelBefore, Place, Value } from "./messages";
import type { Model } from "./model";
import { titled } from "./scene";
import { count, duration, flops, launchFigure, size, times } from "./words";

type Reveal = (places: readonly Place[], focus: boolean) => void;

/** Lines of one list. */
const MOST = 40;

export function kernelDetails(model: Model, index: number, reveal: Reveal): HTMLElement {
  const kernel = model.kernel(index);
  const facts = [
    launched(kernel),
    kernel.endsBecause === "output" || kernel.endsBecause === "XLA's choice" ? "" : `fusion boundary: ${kernel.endsBecause}`,
    kernel.flops > 0 ? flops(kernel.flops) : "",
    timed(kernel),
  ].filter((fact) => fact !== "");
  const again = new Set(kernel.recomputes);
  const equations = model.innermost(index);
  const fed = model.fed(index);
  return h(
    "section",
    { class: "details", "aria-label": `Kernel ${index + 1}` },
    h("h2", {}, `${index + 1}  ${titled(kernel)}`),
    h("p", {}, facts.join(" · ")),
    model.groupName(index) !== "" && h("p", { class: "quiet" }, model.groupName(index)),
    h("p", { class: "flow" }, `in ${values(model.inputsOf(index))}`),
    h("p", { class: "flow" }, `out ${values(kernel.outputs)}`),
    ...(kernel.description.length > 0 ? [communication(kernel.description)] : []),
    equationList(equations, (each) => (again.has(each.path) ? " (recomputed)" : ""), reveal),
    ...(fed.length > 0 ? [h("h3", {}, "feeds"), equationList(fed, () => "", reveal)] : []),
  );
}

/** What is known of a collective; its title stands above. */
function communication(lines: readonly string[]): HTMLElement {
  return h("ul", { class: "communication" }, ...lines.slice(1).map((line) => h("li", {}, line)));
}

/** `120 µs measured (≈ 100 µs, 1.2×)`, or `≈ 100 µs (estimate)`; nothing where no time is known. */
function timed({ measured, seconds, launches }: Kernel): string {
  const estimate = seconds === null || launches === 0 ? "" : `≈ ${duration(seconds)}`;
  if (measured === null) {
    return estimate && `${estimate} (estimate)`;
  }
  const ratio = seconds === null || seconds === 0 || estimate === "" ? "" : `, ${Number((measured / seconds).toPrecision(2))}×`;
  return `${duration(measured)} measured${estimate && ` (${estimate}${ratio})`}`;
}

/** `launched 7 times`; nothing for one launch. */
function launched(kernel: Kernel): string {
  if (!kernel.launchesKnown) {
    return "unknown number of launches";
  }
  if (kernel.launches === 0) {
    return "never launched as the number of iterations is known";
  }
  const figure = launchFigure(kernel);
  return figure === "1" ? "" : `launched ${figure} times`;
}

/** Equations, each of which leads to its place. */
function equationList(equations: readonly Equation[], note: (equation: Equation) => string, reveal: Reveal): HTMLElement {
  const listed = equations.slice(0, MOST).map((each) => {
    const button = h(
      "button",
      { type: "button", class: "equation", disabled: each.place === null, title: each.text },
      h("span", { class: "primitive" }, each.primitive),
      h("span", { class: "token-type" }, each.outputs.join(" ")),
      h("span", { class: "written" }, each.text + note(each)),
    );
    on(button, "click", () => {
      reveal(each.place === null ? [] : [each.place], true);
    });
    return h("li", {}, button);
  });
  const more = equations.length - listed.length;
  return h("ul", {}, ...listed, more > 0 && h("li", { class: "quiet" }, `and ${count(more, "equation")} more`));
}

/** Before and now, and what is gone; what is new is marked in the graph. */
/** @param since `since the last save` */
export function differenceDetails(drawn: Drawn, found: Difference | undefined, since: string): HTMLElement {
  const section = h("section", { class: "details", "aria-label": since }, h("h2", {}, since));
  const { before } = drawn;
  if (before === null || found === undefined) {
    const words =
      drawn.change === ""
        ? "The kernels at the last save are not known for this target."
        : "The kernels have not changed since the last save.";
    section.append(h("p", { class: "quiet" }, words));
    return section;
  }
  const row = (what: string, was: string, now: string): HTMLElement =>
    h("tr", { class: was !== now && "changed" }, h("th", { scope: "row" }, what), h("td", {}, was), h("td", {}, "→"), h("td", {}, now));
  section.append(
    h(
      "table",
      { class: "totals" },
      h(
        "tbody",
        {},
        row("kernels", String(before.kernels.length), String(drawn.kernels.length)),
        row("launches", launchFigure(before), launchFigure(drawn)),
        ...(before.memory === null || drawn.memory === null
          ? []
          : [
              row("temporaries", size(before.memory.temporaries), size(drawn.memory.temporaries)),
              row("peak", size(before.memory.peak), size(drawn.memory.peak)),
            ]),
      ),
    ),
    ...list("+", "new", [...found.added].flatMap((index) => {
      const kernel = drawn.kernels[index];
      return kernel === undefined ? [] : [`${index + 1}  ${words(kernel)}`];
    })),
    ...list("−", "gone", found.gone.map(words)),
  );
  return section;
}

function list(sign: string, kind: "new" | "gone", lines: readonly string[]): readonly HTMLElement[] {
  if (lines.length === 0) {
    return [];
  }
  const items = lines.slice(0, MOST).map((line) => h("li", { class: kind }, `${sign} ${line}`));
  const more = lines.length - items.length;
  return [
    h("h3", {}, `${count(lines.length, "kernel")} ${kind}`),
    h("ul", {}, ...items, more > 0 && h("li", { class: "quiet" }, `and ${more} more`)),
  ];
}

function words(kernel: KernelBefore): string {
  return `${kernel.what}${times(kernel)} → ${kernel.outputs.map((value) => value.text).join(", ")}`;
}

function values(all: readonly Value[]): string {
  if (all.length === 0) {
    return "nothing";
  }
  const bytes = all.reduce((sum, value) => sum + value.bytes, 0);
  const named = all.slice(0, 6).map((value) => value.text);
  const more = all.length > named.length ? ` and ${all.length - named.length} more` : "";
  return `${size(bytes)}: ${named.join(", ")}${more}`;
}
