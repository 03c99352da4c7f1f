/** Tabs as the ARIA practices have them: arrows move between them, the page belongs to its tab. */

import { h, on } from "./dom";

export interface Tab<Name extends string> {
  readonly name: Name;
  readonly title: string;
  readonly page: HTMLElement;
}

export class Tabs<Name extends string> {
  readonly list: HTMLElement;
  readonly pages: HTMLElement;
  private readonly buttons = new Map<Name, HTMLButtonElement>();
  current: Name;

  constructor(
    private readonly tabs: readonly Tab<Name>[],
    first: Name,
    private readonly changed: (name: Name) => void,
    ids = "",
  ) {
    this.current = first;
    this.list = h("div", { class: "tablist", role: "tablist", "aria-label": "Views" });
    this.pages = h("div", { class: "pages" });
    for (const { name, title, page } of tabs) {
      const button = h("button", { type: "button", role: "tab", id: `${ids}tab-${name}`, "aria-controls": `${ids}page-${name}` }, title);
      on(button, "click", () => {
        this.open(name);
      });
      this.buttons.set(name, button);
      this.list.append(button);
      page.id = `${ids}page-${name}`;
      page.setAttribute("role", "tabpanel");
      page.setAttribute("aria-labelledby", `${ids}tab-${name}`);
      this.pages.append(page);
    }
    on(this.list, "keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (step !== 0) {
        const { offered } = this;
        const at = offered.findIndex((tab) => tab.name === this.current);
        const next = offered[(at + step + offered.length) % offered.length];
        if (next !== undefined) {
          this.open(next.name);
          this.buttons.get(next.name)?.focus();
        }
        event.preventDefault();
      }
    });
    this.mark();
  }

  open(name: Name): void {
    this.current = name;
    this.mark();
    this.changed(name);
  }

  /** Offers a tab, or not; the first that is left is in front where it was. */
  offer(name: Name, isThere: boolean): void {
    const button = this.buttons.get(name);
    if (button !== undefined && button.hidden === isThere) {
      button.hidden = !isThere;
      if (!isThere && this.current === name) {
        this.open(this.offered[0]?.name ?? name);
      }
    }
  }

  private get offered(): readonly Tab<Name>[] {
    return this.tabs.filter(({ name }) => this.buttons.get(name)?.hidden === false);
  }

  private mark(): void {
    for (const { name, page } of this.tabs) {
      const here = name === this.current;
      const button = this.buttons.get(name);
      button?.setAttribute("aria-selected", String(here));
      button?.setAttribute("tabindex", here ? "0" : "-1");
      page.hidden = !here;
    }
  }
}
