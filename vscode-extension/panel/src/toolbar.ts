/** The line at the top: the function, what it is traced with and compiled for, and what can be done. */

import { h, on, set, write } from "./dom";
import { type Icon, icon } from "./icons";
import type { Abilities, Following, Shown } from "./messages";

export interface ToolbarEvents {
  setChosen(set: string): void;
  targetChosen(target: string): void;
  followed(following: Following): void;
  differenceAsked(shown: boolean): void;
  measure(): void;
  copy(): void;
  save(): void;
}

const FIRST_SET = "(unnamed)";
const MEASURE = "Measure: run the function, and time its kernels";

export class Toolbar {
  readonly element: HTMLElement;
  private readonly name = h("h1", {}, "jaxsight");
  private readonly sets = h("select", { "aria-label": "Example inputs" });
  private readonly setsLabel = h("label", { hidden: true }, "inputs ", this.sets);
  private readonly targets = h("select", { "aria-label": "Target" });
  private readonly targetsLabel = h("label", { hidden: true }, "target ", this.targets);
  private readonly pin: HTMLButtonElement;
  private readonly pause: HTMLButtonElement;
  private readonly difference: HTMLButtonElement;
  private readonly measuring: HTMLButtonElement;
  private readonly saving: HTMLButtonElement;
  private shown: Shown | undefined;
  private isMeasuring = false;

  constructor(
    private readonly can: Abilities,
    events: ToolbarEvents,
  ) {
    const follow = (): void => {
      events.followed({ pinned: pressed(this.pin), paused: pressed(this.pause) });
    };
    this.pin = toggle("pin", "Pin: keep showing this function", follow);
    this.pause = toggle("pause", "Pause: ignore edits", follow);
    this.difference = toggle("difference", "Compare with the last save", () => {
      events.differenceAsked(pressed(this.difference));
    });
    this.measuring = button("measure", MEASURE, () => {
      events.measure();
    });
    this.measuring.disabled = true;
    const copy = button("copy", "Copy the content of this tab", () => {
      events.copy();
    });
    this.saving = button("save", "Save the graph as SVG", () => {
      events.save();
    });
    on(this.sets, "change", () => {
      events.setChosen(this.sets.value);
    });
    on(this.targets, "change", () => {
      events.targetChosen(this.targets.value);
    });
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Panel" });
    this.measuring.hidden = !can.compute;
    this.pin.hidden = this.pause.hidden = !can.follow;
    tools.append(this.measuring, this.pin, this.pause, this.difference, copy, this.saving);
    this.element = h("header", {}, this.name, this.setsLabel, this.targetsLabel, tools);
  }

  show(shown: Shown): void {
    write(this.name, shown.function);
    set(this.name, "title", shown.function);
    options(this.sets, shown.sets, shown.set, (set) => set || FIRST_SET);
    this.setsLabel.hidden = shown.sets.length < 2;
    options(this.targets, shown.targets, shown.target, (target) => target);
    this.targetsLabel.hidden = shown.targets.length < (this.can.compute ? 1 : 2);
    const changed = shown.drawn?.before !== null && shown.drawn?.before !== undefined;
    this.difference.classList.toggle("news", changed && this.can.follow);
    this.difference.hidden = !changed && !this.can.follow;
    const words = `Compare with ${shown.comparedWith ?? "the last save"}`;
    set(this.difference, "title", words);
    set(this.difference, "aria-label", words);
    this.saving.disabled = shown.drawn === null;
    this.shown = shown;
    this.tellMeasure();
  }

  /** A measurement begins or ends. */
  measure(isMeasuring: boolean): void {
    this.isMeasuring = isMeasuring;
    this.tellMeasure();
  }

  private tellMeasure(): void {
    const { shown, measuring } = this;
    const measured = shown?.drawn?.measured ?? null;
    const words = shown?.measurable === false ? `${shown.target} is not here to be measured` : measured === null ? MEASURE : `${MEASURE} again`;
    set(measuring, "title", words);
    set(measuring, "aria-label", words);
    measuring.disabled = this.isMeasuring || shown?.measurable !== true || shown.drawn === null;
    measuring.classList.toggle("news", measured?.stale === true);
  }

  follow(following: Following): void {
    press(this.pin, following.pinned);
    press(this.pause, following.paused);
  }
}

/** A button of an icon; its words are its name and its tooltip. */
export function button(name: Icon, words: string, pressedNow: () => void): HTMLButtonElement {
  const element = h("button", { type: "button", class: "tool", title: words, "aria-label": words }, icon(name));
  on(element, "click", pressedNow);
  return element;
}

function toggle(name: Icon, words: string, changed: () => void): HTMLButtonElement {
  const element = button(name, words, () => {
    press(element, !pressed(element));
    changed();
  });
  press(element, false);
  return element;
}

function pressed(element: HTMLButtonElement): boolean {
  return element.getAttribute("aria-pressed") === "true";
}

function press(element: HTMLButtonElement, down: boolean): void {
  element.setAttribute("aria-pressed", String(down));
}

function options(
  select: HTMLSelectElement,
  values: readonly string[],
  chosen: string,
  words: (value: string) => string,
): void {
  select.replaceChildren(...values.map((value) => h("option", { value, selected: value === chosen }, words(value))));
  select.value = chosen;
}
