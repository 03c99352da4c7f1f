/** A text of many lines, of which only those that are seen are elements; lines that stand for something of the source can be chosen. */

import { goesOn, type Quotes, tokens } from "./colours";
import { h, on } from "./dom";
import type { Content } from "./messages";

export interface TextEvents {
  /** A line was chosen; `focus`: the source is to be gone to. */
  chosen(line: number, focus: boolean): void;
}

/** Lines that are there beyond those that are seen. */
const MORE = 20;

export class TextView {
  readonly element: HTMLElement;
  private readonly spacer = h("div", { class: "spacer" });
  private lines: readonly string[] = [];
  private numbers: readonly number[] | undefined;
  /** The string that goes on from the line before, for each line of a Python file. */
  private opened: readonly (Quotes | "")[] = [];
  private subject = "";
  private linked: ReadonlySet<number> = new Set();
  private lit: ReadonlySet<number> = new Set();
  private chosen: ReadonlySet<number> = new Set();
  private active = 0;
  private readonly drawn = new Map<number, HTMLElement>();

  constructor(
    label: string,
    private readonly height: number,
    private readonly events: TextEvents,
    private readonly ids = "",
  ) {
    this.element = h("div", { class: "text-area", tabindex: 0, role: "listbox", "aria-label": label });
    this.element.append(this.spacer);
    on(this.element, "scroll", () => {
      this.draw();
    });
    on(this.element, "click", (event) => {
      const line = event.target instanceof Element ? event.target.closest("[data-line]") : null;
      // Who selects some text does not choose its line.
      if (line !== null && getSelection()?.isCollapsed !== false) {
        this.activate(Number(line.getAttribute("data-line")));
        this.events.chosen(this.active, event.ctrlKey || event.metaKey);
      }
    });
    on(this.element, "keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) {
        event.preventDefault();
      }
    });
    if (typeof ResizeObserver !== "undefined") {
      new ResizeObserver(() => {
        this.draw();
      }).observe(this.element);
    }
  }

  /**
   * @param numbers those of the lines in their Python file, where not all are shown.
   * @param subject what the text is about: HLO of another one is seen from its entry computation on, which comes last.
   */
  show(content: Pick<Content, "text" | "links"> | undefined, subject = "", numbers?: readonly number[]): void {
    this.numbers = numbers;
    this.lines = content === undefined ? [] : content.text.replace(/\n$/, "").split("\n");
    let open: Quotes | "" = "";
    const isPython = numbers !== undefined || content?.text.includes('"""') === true;
    this.opened = (isPython ? this.lines : []).map((_, at) => {
      const here = this.isAfterGap(at) ? "" : open;
      open = goesOn(this.lines[at] ?? "", here);
      return here;
    });
    this.linked = new Set(content?.links.map((link) => link.line));
    this.active = Math.min(this.active, Math.max(0, this.lines.length - 1));
    const widest = this.lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.spacer.style.height = `${this.lines.length * this.height}px`;
    this.spacer.style.minWidth = `${widest + 8}ch`;
    this.drawn.forEach((element) => {
      element.remove();
    });
    this.drawn.clear();
    if (subject !== this.subject) {
      this.subject = subject;
      const entry = this.lines.findIndex((line) => line.startsWith("ENTRY "));
      this.active = Math.max(0, entry);
      this.element.scrollTop = this.active * this.height;
    }
    this.draw();
  }

  /** The lines of the expression at the cursor; the first comes into view. */
  light(lines: readonly number[]): void {
    this.lit = new Set(lines);
    this.reveal(lines[0]);
  }

  /** The lines of what was chosen elsewhere. */
  choose(lines: readonly number[]): void {
    this.chosen = new Set(lines);
    this.reveal(lines[0]);
  }

  /** Brings a line into view. */
  reveal(line: number | undefined): void {
    if (line !== undefined) {
      const top = line * this.height;
      const { scrollTop, clientHeight } = this.element;
      if (clientHeight > 0 && (top < scrollTop || top + this.height > scrollTop + clientHeight)) {
        this.element.scrollTop = Math.max(0, top - clientHeight / 3);
      }
    }
    this.draw();
    this.mark();
  }

  private activate(line: number): void {
    this.active = Math.max(0, Math.min(line, this.lines.length - 1));
    this.reveal(this.active);
  }

  private key(key: string): boolean {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.lines.length,
      End: this.lines.length,
    };
    const step = steps[key];
    if (step !== undefined) {
      this.activate(this.active + step);
      this.events.chosen(this.active, false);
      return true;
    }
    if (key === "Enter") {
      this.events.chosen(this.active, true);
      return true;
    }
    return false;
  }

  private draw(): void {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - MORE);
    const last = Math.min(this.lines.length, Math.ceil((scrollTop + clientHeight) / this.height) + MORE);
    for (const [number, element] of this.drawn) {
      if (number < first || number >= last) {
        element.remove();
        this.drawn.delete(number);
      }
    }
    for (let number = first; number < last; number++) {
      if (!this.drawn.has(number)) {
        const element = this.line(number, this.lines[number] ?? "");
        this.drawn.set(number, element);
        this.spacer.append(element);
      }
    }
  }

  private mark(): void {
    for (const [number, element] of this.drawn) {
      this.markOne(element, number);
    }
    this.element.setAttribute("aria-activedescendant", `${this.ids}line-${this.active}`);
  }

  private markOne(element: HTMLElement, number: number): void {
    element.classList.toggle("lit", this.lit.has(number));
    element.classList.toggle("chosen", this.chosen.has(number));
    element.classList.toggle("active", this.active === number);
    element.setAttribute("aria-selected", String(this.chosen.has(number)));
  }

  /** Whether lines of the file before this one are not shown. */
  private isAfterGap(at: number): boolean {
    const [before, here] = [this.numbers?.[at - 1], this.numbers?.[at]];
    return before !== undefined && here !== undefined && here !== before + 1;
  }

  private line(number: number, text: string): HTMLElement {
    const digits = String(this.numbers?.at(-1) ?? this.lines.length).length;
    const shownNumber = this.numbers?.[number] ?? number + 1;
    const attributes = {
      class: `line${this.linked.has(number) ? " linked" : ""}${this.isAfterGap(number) ? " after-gap" : ""}`,
      id: `${this.ids}line-${number}`,
      role: "option",
      "data-line": number,
      "aria-label": text.trim() === "" && "blank",
    };
    const line = h(
      "div",
      attributes,
      h("span", { class: "number", "aria-hidden": "true" }, String(shownNumber).padStart(digits)),
      ...tokens(text, this.opened[number]).map((token) => (token.kind === "" ? token.text : h("span", { class: `token-${token.kind}` }, token.text))),
    );
    line.style.top = `${number * this.height}px`;
    this.markOne(line, number);
    return line;
  }
}
