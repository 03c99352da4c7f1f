/** How a function's figures grow with its sizes: which are swept, the curve of one figure, and the table of all. */

import { h, on, s, write } from "./dom";
import type { Picture, Shape, Swept } from "./messages";

/** The figures as `jaxsight sweep --plot` names them, and in words. */
const FIGURES = {
  temp: "temporary memory",
  memory: "all memory",
  kernels: "kernels",
  traffic: "bytes in + out",
  time: "estimated time",
} as const;

export interface GrowthEvents {
  /** Sizes are to be swept; none: what may be swept is asked for. */
  asked(sizes: string, figure: string): void;
}

export class GrowthView {
  readonly element = h("div", { class: "growth-area", tabindex: 0 });
  private readonly sizes = h("input", { type: "text", "aria-label": "Sizes with values, such as B=1..64", spellcheck: "false" });
  private readonly figure = h("select", { "aria-label": "Figure of the curve" });
  private readonly run = h("button", { type: "submit" }, "Sweep");
  private readonly status = h("p", { class: "quiet", role: "status" });
  private readonly results = h("div");
  /** Whether the server was asked about the function that is shown. */
  private isAsked = false;
  /** The function's figures when it was swept, and as they are now. */
  private then = "";
  private now = "";

  /** @param canSweep whether other sizes can be asked for. */
  constructor(
    canSweep: boolean,
    private readonly events: GrowthEvents,
  ) {
    for (const [value, words] of Object.entries(FIGURES)) {
      this.figure.append(h("option", { value }, words));
    }
    const form = h("form", { class: "sweep" }, h("label", {}, "sizes ", this.sizes), h("label", {}, "curve ", this.figure), this.run);
    form.hidden = !canSweep;
    on(form, "submit", (event) => {
      event.preventDefault();
      this.sweep();
    });
    on(this.figure, "change", () => {
      if (this.results.childElementCount > 0) {
        this.sweep();
      }
    });
    this.element.append(form, this.status, this.results);
  }

  /** Another function, or another text of it, with its figures in words. */
  show(isOther: boolean, headline: string): void {
    this.now = headline;
    if (isOther) {
      this.isAsked = false;
      this.sizes.value = "";
      this.results.replaceChildren();
      write(this.status, "");
    } else if (this.results.childElementCount > 0 && this.then !== headline) {
      write(this.status, "The function has changed since it was swept.");
    }
  }

  /** The tab is in front. */
  open(): void {
    if (!this.isAsked) {
      this.isAsked = true;
      this.events.asked("", this.figure.value);
    }
  }

  hear(swept: Swept | null): void {
    this.run.disabled = false;
    if (swept === null) {
      return;
    }
    if (this.sizes.value === "") {
      this.sizes.value = swept.suggested;
    }
    const names = swept.sizes.length > 0 ? `Sizes: ${swept.sizes.join(", ")}.` : "";
    write(this.status, swept.trouble !== "" ? swept.trouble : swept.picture === null ? names : "");
    this.results.replaceChildren();
    if (swept.picture !== null) {
      this.then = this.now;
      this.results.append(drawing(swept.picture), table(swept), ...swept.remarks.map((line) => h("p", {}, line)));
    }
  }

  private sweep(): void {
    this.run.disabled = true;
    write(this.status, "compiling with each size…");
    this.events.asked(this.sizes.value, this.figure.value);
  }
}

function drawing({ title, width, height, shapes }: Picture): SVGElement {
  return s(
    "svg",
    { class: "growth", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
    ...shapes.map(element),
  );
}

function element({ tag, attributes, text }: Shape): SVGElement {
  if (tag === "text") {
    return s(tag, attributes, text);
  }
  return s(tag, attributes, text !== "" && s("title", {}, text));
}

function table({ columns, rows }: Swept): HTMLElement {
  return h(
    "table",
    { class: "growth-table" },
    h("thead", {}, h("tr", {}, ...columns.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell))))),
  );
}
