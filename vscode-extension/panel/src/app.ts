/** The panel: what it shows, and what follows what. Its parts know nothing of each other, and none of them knows the host. */

import { Boxes } from "./scene";
import { differenceDetails, kernelDetails } from "./details";
import { type Difference, difference } from "./diff";
import { h, on, set, write } from "./dom";
import { GraphView } from "./graph_view";
import { GrowthView } from "./growth_view";
import { KernelList } from "./kernel_list";
import type { Layout } from "./layout";
import { layoutDetails } from "./layout_picture";
import { listed } from "./listed";
import { MemoryView } from "./memory_view";
import type { Content, Divided, Following, Host, Kind, Place, Position, Shown, ToPanel } from "./messages";
import { distinct, linesAt, Model, unique } from "./model";
import type { Scene } from "./scene";
import { Tabs } from "./tabs";
import { TextView } from "./text_view";
import { button, Toolbar } from "./toolbar";

type TextTab = "jaxpr" | "stablehlo" | "hlo" | "source";
type TabName = "graph" | "memory" | "growth" | TextTab;

const NOTHING = "Place the cursor in a function with example inputs.";
const LOST = "The server does not answer any more. This page shows what it said last.";
/** Graphs of fewer kernels begin without a list of them: all are seen. */
const LISTED = 12;
const KINDS_OF: Readonly<Record<TextTab, readonly Kind[]>> = {
  jaxpr: ["jaxpr"],
  stablehlo: ["stablehlo"],
  hlo: ["hlo", "hlo-metadata"],
  source: ["pretty", "lax"],
};
const TEXT_TABS = Object.keys(KINDS_OF) as readonly TextTab[];
const STYLES = { pretty: "readable", lax: "pure lax" } as const;

export class App {
  readonly element: HTMLElement;
  private readonly toolbar: Toolbar;
  private readonly tabs: Tabs<TabName>;
  private readonly graph: GraphView;
  private readonly list: KernelList;
  /** The boxes around what is drawn and what keys act on. */
  private readonly crumbs = h("nav", { class: "crumbs", "aria-label": "Boxes around" });
  private readonly memory: MemoryView;
  private readonly growth: GrowthView;
  private readonly texts: Readonly<Record<TextTab, TextView>>;
  /** How the value at the cursor is divided over devices. */
  private divided: Divided | undefined;
  private readonly details = h("aside", { "aria-live": "polite" });
  private readonly banner = h("div", { class: "banner", role: "status", hidden: true });
  private readonly status = h("footer", { role: "status" });
  private readonly style = h("select", { "aria-label": "Style of the source" });
  /** Whether HLO is shown with the names that XLA keeps for profilers. */
  private readonly metadata = h("input", { type: "checkbox" });
  private readonly contents = new Map<Kind, Content | "asked">();
  private shown: Shown | undefined;
  private model: Model | undefined;
  private boxes: Boxes | undefined;
  private chosen: readonly number[] = [];
  /** The line that was opened by its address: it stays chosen when the graph has been laid out. */
  private opened: { readonly tab: TextTab; readonly line: number } | undefined;
  private cursor: { uri: string; position: Position } | undefined;
  /** Whether something was chosen here after the cursor had moved: then that is what is brought into view. */
  private choosing = false;
  private following: Following = { pinned: false, paused: false };
  private comparing = false;
  private changed: Difference | undefined;
  private omitted = "";
  private busy = { answer: false, layout: false, measuring: false };

  constructor(
    private readonly host: Host,
    layouter: { layout(scene: Scene, early?: (layout: Layout) => void): Promise<Layout> },
    line: number,
    /** What the identifiers of its elements begin with, where a page has several panels. */
    private readonly ids = "",
  ) {
    this.toolbar = new Toolbar(host.can, {
      setChosen: (set) => {
        host.send({ type: "chooseSet", set });
      },
      targetChosen: (target) => {
        host.send({ type: "chooseTarget", target });
      },
      followed: (following) => {
        this.follow(following);
        host.send({ type: "follow", following });
      },
      differenceAsked: (shown) => {
        this.comparing = shown;
        this.tellDetails();
        if (shown) {
          this.tabs.open("graph");
        }
      },
      measure: () => {
        host.send({ type: "measure" });
      },
      copy: () => {
        this.copy();
      },
      save: () => {
        this.save();
      },
    });
    this.graph = new GraphView(layouter, line, {
      chosen: (kernels, focus) => {
        this.choose(kernels, focus);
      },
      toggled: (id) => {
        this.boxes?.toggle(id);
        void this.drawGraph(false);
      },
      entered: (id) => {
        this.enter(id);
      },
      activated: (id) => {
        this.tellCrumbs(id);
      },
      busy: (busy) => {
        this.busy.layout = busy;
        this.tellStatus();
      },
    }, ids);
    this.list = new KernelList(line + 3, {
      chosen: (kernel, focus) => {
        this.choose([kernel], focus);
      },
    }, ids);
    this.memory = new MemoryView({
      chosen: (kernels, places, focus) => {
        this.choose(kernels, focus, places);
      },
    });
    this.growth = new GrowthView(host.can.compute, {
      asked: (sizes, figure) => {
        host.send({ type: "sweep", sizes, figure });
      },
    });
    const text = (label: string, kind: () => Kind): TextView =>
      new TextView(label, line, {
        chosen: (at, focus) => {
          this.chooseLine(kind(), at, focus);
        },
      }, `${ids}${kind()}-`);
    this.texts = {
      jaxpr: text("jaxpr", () => "jaxpr"),
      stablehlo: text("StableHLO", () => "stablehlo"),
      hlo: text("Optimized HLO", () => this.hloKind),
      source: text("The function as source", () => this.sourceKind),
    };
    for (const [value, words] of Object.entries(STYLES)) {
      this.style.append(h("option", { value }, words));
    }
    for (const choice of [this.style, this.metadata]) {
      choice.addEventListener("change", () => {
        this.showText();
      });
    }
    this.tabs = this.makeTabs();
    this.element = h("div", { class: "panel" });
    this.element.append(this.toolbar.element, this.tabs.list, this.banner, this.tabs.pages, this.status);
    this.tell(NOTHING);
  }

  /** What the host says. */
  hear(message: ToPanel): void {
    switch (message.type) {
      case "show":
        this.show(message.shown);
        break;
      case "busy":
        this.busy.answer = message.busy;
        this.tellStatus();
        break;
      case "measuring":
        this.busy.measuring = message.measuring;
        this.toolbar.measure(message.measuring);
        this.tellStatus();
        break;
      case "cursor":
        this.moveTo(message.uri, message.position);
        break;
      case "content":
        this.contents.set(message.kind, message.content);
        this.showText();
        break;
      case "swept":
        this.tabs.offer("growth", this.host.can.compute || message.swept !== null);
        this.growth.hear(message.swept);
        break;
      case "following":
        this.follow(message.following);
        break;
      case "choose":
        this.choose(message.kernels, false);
        break;
      case "open":
        this.openLine(message.kind, message.line);
        break;
      case "lost":
        this.tell(message.lost ? LOST : (this.shown?.trouble ?? ""));
        break;
    }
  }

  /** Brings the whole graph into view. */
  fit(): void {
    this.graph.fit();
  }

  private get since(): string {
    const other = this.shown?.comparedWith;
    return other === undefined ? "since the last save" : `against ${other}`;
  }

  private get sourceKind(): "pretty" | "lax" {
    return this.style.value === "lax" ? "lax" : "pretty";
  }

  private get hloKind(): "hlo" | "hlo-metadata" {
    return this.metadata.checked ? "hlo-metadata" : "hlo";
  }

  /** The text of a tab. */
  private kindOf(tab: TextTab): Kind {
    return tab === "source" ? this.sourceKind : tab === "hlo" ? this.hloKind : tab;
  }

  private makeTabs(): Tabs<TabName> {
    const zoom = h("div", { class: "zoom", role: "toolbar", "aria-label": "Graph" });
    zoom.append(
      button("fit", "Fit the graph to the panel (0)", () => {
        this.graph.fit();
      }),
      button("open", "Expand all boxes", () => {
        this.boxes?.open();
        void this.drawGraph(true);
      }),
      button("close", "Collapse all boxes", () => {
        this.boxes?.close();
        void this.drawGraph(true);
      }),
      button("list", "Show or hide the list of kernels", () => {
        this.list.element.hidden = !this.list.element.hidden;
      }),
    );
    const stage = h("div", { class: "stage" }, this.graph.element, zoom);
    const split = h("div", { class: "split" }, stage, this.list.element);
    const source = h("div", { class: "sourcerized" }, h("label", { class: "style" }, "style ", this.style), this.texts.source.element);
    const hlo = h("div", { class: "sourcerized" }, h("label", { class: "style" }, this.metadata, " metadata"), this.texts.hlo.element);
    return new Tabs<TabName>(
      [
        { name: "graph", title: "Graph", page: h("div", { class: "page graph-page" }, this.crumbs, split, this.details) },
        { name: "jaxpr", title: "jaxpr", page: h("div", { class: "page" }, this.texts.jaxpr.element) },
        { name: "stablehlo", title: "StableHLO", page: h("div", { class: "page" }, this.texts.stablehlo.element) },
        { name: "hlo", title: "HLO", page: h("div", { class: "page" }, hlo) },
        { name: "memory", title: "Memory", page: h("div", { class: "page" }, this.memory.element) },
        { name: "growth", title: "Growth", page: h("div", { class: "page" }, this.growth.element) },
        { name: "source", title: "Sourcerized", page: h("div", { class: "page" }, source) },
      ],
      "graph",
      () => {
        this.showText();
        this.mark();
      },
      this.ids,
    );
  }

  private show(shown: Shown | null): void {
    if (shown === null) {
      if (this.shown === undefined) {
        this.tell(NOTHING);
      }
      return;
    }
    const before = this.shown;
    const same =
      before?.function === shown.function &&
      before.uri === shown.uri &&
      before.set === shown.set &&
      before.target === shown.target;
    // While the text is half written the picture of what it was stays, and says so.
    const kept = same && shown.drawn === null && before.drawn !== null;
    this.shown = kept ? { ...before, stale: true, trouble: shown.trouble } : shown;
    this.contents.clear();
    this.toolbar.show(this.shown);
    this.tell(shown.trouble);
    this.element.classList.toggle("stale", this.shown.stale);
    this.growth.show(!same, this.shown.drawn?.headline ?? "");
    this.offer(shown);
    if (!kept) {
      this.adopt(before?.function !== shown.function || before.uri !== shown.uri);
    }
    this.tellStatus();
    this.keep();
    this.showText();
    this.mark();
  }

  /** The tabs whose texts there are. */
  private offer({ documents }: Shown): void {
    for (const tab of TEXT_TABS) {
      const kinds = KINDS_OF[tab].filter((kind) => documents[kind] !== undefined);
      const choice = { jaxpr: undefined, stablehlo: undefined, hlo: this.metadata, source: this.style }[tab];
      choice?.parentElement?.toggleAttribute("hidden", kinds.length < 2);
      this.tabs.offer(tab, kinds.length > 0);
    }
    if (!this.host.can.compute) {
      this.tabs.offer("growth", false); // until the host has something
    }
  }

  private adopt(fresh: boolean): void {
    const drawn = this.shown?.drawn ?? null;
    this.chosen = [];
    this.choosing = false;
    this.changed = undefined;
    if (drawn === null) {
      this.model = undefined;
      this.boxes = undefined;
      this.graph.empty();
      this.list.show(undefined);
      this.tellCrumbs();
      this.memory.show(undefined);
      this.tellDetails();
      return;
    }
    this.model = new Model(drawn);
    this.boxes = new Boxes(this.model, fresh ? undefined : this.boxes);
    if (drawn.before !== null) {
      this.changed = difference(drawn.before.kernels, drawn.kernels);
    }
    this.graph.markAdded(this.changed?.added ?? new Set());
    this.list.show(this.model);
    if (fresh) {
      this.list.element.hidden = drawn.kernels.length < LISTED;
    }
    this.limitList();
    this.memory.show(this.model);
    this.graph.choose([]);
    this.tellDetails();
    void this.drawGraph(fresh);
  }

  private enter(id: string): void {
    if (this.boxes !== undefined) {
      // Out of a box: into the one around it.
      this.boxes.enter(id !== "" ? id : (this.boxes.around(this.boxes.entered).at(-2)?.id ?? ""));
      this.limitList();
      void this.drawGraph(true);
    }
  }

  private limitList(): void {
    const { boxes, model } = this;
    const entered = boxes?.around(boxes.entered).at(-1);
    this.list.limit(entered?.kernels ?? model?.drawn.kernels.map((_, index) => index) ?? []);
    this.tellCrumbs();
  }

  /** The boxes around what is drawn, and on to the box or kernel that keys act on; each leads into it. */
  private tellCrumbs(active = ""): void {
    const { boxes, shown } = this;
    const entered = boxes?.around(boxes.entered) ?? [];
    const inside = boxes?.around(active) ?? [];
    const path = inside.length > entered.length ? inside : entered;
    this.crumbs.hidden = boxes === undefined || boxes.items.every((item) => "kernel" in item);
    const crumb = (words: string, here: boolean, go: () => void): HTMLElement => {
      const step = h("button", { type: "button", title: words, class: here && "here", "aria-current": here && "true" }, words);
      on(step, "click", go);
      return step;
    };
    const all = crumb(shown?.function ?? "", entered.length === 0, () => {
      boxes?.enter("");
      this.limitList();
      void this.drawGraph(true);
    });
    const steps = path.map((box, at) => crumb(box.title, at === entered.length - 1, () => {
      this.enter(box.id);
    }));
    this.crumbs.replaceChildren(all, ...steps);
  }

  private async drawGraph(fresh: boolean): Promise<void> {
    if (this.boxes === undefined) {
      return;
    }
    const scene = this.boxes.scene();
    this.omitted = scene.omitted;
    try {
      await this.graph.show(scene, fresh);
    } catch (error) {
      this.tell(`Failed to lay out the graph: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.mark();
  }

  /** The text of the tab in front, once it is there. */
  private showText(): void {
    const tab = this.tabs.current;
    const { shown } = this;
    if (tab === "growth" && shown !== undefined) {
      this.growth.open();
    }
    if (!isText(tab) || shown === undefined) {
      return;
    }
    const kind = this.kindOf(tab);
    const content = this.contents.get(kind);
    if (content === undefined) {
      this.contents.set(kind, "asked");
      this.host.send({ type: "content", kind });
    } else if (content !== "asked") {
      this.texts[tab].show(content, `${shown.uri} ${shown.function} ${shown.target}`);
      this.mark();
    }
  }

  private openLine(kind: Kind, line: number): void {
    const tab = TEXT_TABS.find((each) => KINDS_OF[each].includes(kind));
    if (tab !== undefined) {
      this.tabs.open(tab);
      this.chooseLine(kind, line, false);
      this.opened = { tab, line };
      this.markChosen();
    }
  }

  private moveTo(uri: string, position: Position): void {
    const before = this.cursor;
    const moved =
      before?.uri !== uri || before.position.line !== position.line || before.position.character !== position.character;
    this.cursor = { uri, position };
    this.choosing &&= !moved;
    this.mark();
  }

  /** Marks what is chosen and what the cursor means; the later of the two comes into view. */
  private mark(): void {
    if (this.choosing) {
      this.light();
      this.markChosen();
    } else {
      this.markChosen();
      this.light();
    }
  }

  /** Lights what belongs to the expression at the cursor. */
  private light(): void {
    if (this.cursor === undefined) {
      return;
    }
    const { uri, position } = this.cursor;
    const divided = this.model?.dividedAt(uri, position);
    if (divided?.text !== this.divided?.text) {
      this.divided = divided;
      this.tellDetails();
    }
    const tab = this.tabs.current;
    if (tab === "graph") {
      const kernels = this.model?.kernelsAt(uri, position) ?? [];
      this.graph.light(kernels);
      this.list.light(kernels);
    } else if (tab === "memory") {
      this.memory.light(this.model?.pathsAt(uri, position) ?? new Set(), this.model?.kernelsAt(uri, position) ?? []);
    } else if (isText(tab)) {
      const content = this.contents.get(this.kindOf(tab));
      if (content !== undefined && content !== "asked") {
        this.texts[tab].light(linesAt(content.links, uri, position));
      }
    }
  }

  /** @param places what is lit in the source; where the kernels are written, where it is missing. */
  private choose(kernels: readonly number[], focus: boolean, places?: readonly Place[]): void {
    const model = this.model;
    if (model === undefined) {
      return;
    }
    this.chosen = kernels;
    this.opened = undefined;
    this.choosing = true;
    this.tellCrumbs(kernels.length === 1 ? `k${kernels[0] ?? 0}` : "");
    this.markChosen();
    this.tellDetails();
    this.reveal(places ?? distinct(kernels.flatMap((index) => model.placesOf(index))), focus);
  }

  private chooseLine(kind: Kind, line: number, focus: boolean): void {
    this.opened = undefined;
    const content = this.contents.get(kind);
    if (content === undefined || content === "asked") {
      return;
    }
    const links = content.links.filter((link) => link.line === line);
    const exact = (this.model?.drawn.kernels ?? []).flatMap((kernel, index) => (kind === this.hloKind && kernel.line === line ? [index] : []));
    const model = this.model;
    this.chosen = exact.length > 0 ? exact : unique(links.flatMap((link) => model?.kernelsOf(link.path) ?? []));
    this.choosing = true;
    this.markChosen();
    this.tellDetails();
    const places = links.flatMap((link) => (link.range === null ? [] : [{ uri: link.uri, range: link.range }]));
    this.reveal(distinct(places), focus);
  }

  /** The chosen kernels in the graph and in the text in front. */
  private markChosen(): void {
    this.graph.choose(this.chosen);
    this.list.choose(this.chosen);
    const tab = this.tabs.current;
    if (!isText(tab)) {
      return;
    }
    if (this.opened?.tab === tab) {
      this.texts[tab].choose([this.opened.line]);
      return;
    }
    const content = this.contents.get(this.kindOf(tab));
    const { model } = this;
    if (content === undefined || content === "asked" || model === undefined) {
      return;
    }
    if (tab === "hlo") {
      this.texts.hlo.choose(this.chosen.map((index) => model.kernel(index).line));
      return;
    }
    const paths = new Set(this.chosen.flatMap((index) => model.innermost(index).map((each) => each.path)));
    const lines = content.links.filter((link) => paths.has(link.path)).map((link) => link.line);
    this.texts[tab].choose(unique(lines));
  }

  private reveal(places: readonly Place[], focus: boolean): void {
    this.host.send({ type: "reveal", places, focus, kernels: this.chosen });
  }

  private follow(following: Following): void {
    this.following = following;
    this.toolbar.follow(following);
    this.keep();
  }

  private keep(): void {
    if (this.shown !== undefined) {
      this.host.keep({ uri: this.shown.uri, function: this.shown.function, ...this.following });
    }
  }

  private copy(): void {
    if (this.shown === undefined) {
      return;
    }
    const tab = this.tabs.current;
    if (!isText(tab)) {
      this.host.send({ type: "copy", text: listed(this.shown), what: "the kernels as a table" });
      return;
    }
    const content = this.contents.get(this.kindOf(tab));
    if (content !== undefined && content !== "asked") {
      this.host.send({ type: "copy", text: content.text, what: `the ${tab}` });
    }
  }

  private save(): void {
    const svg = this.graph.file();
    if (svg !== undefined && this.shown !== undefined) {
      this.host.send({ type: "save", name: `${this.shown.function}.svg`, svg });
    }
  }

  private tell(words: string): void {
    write(this.banner, words);
    this.banner.hidden = words === "";
  }

  private tellStatus(): void {
    const { answer, layout, measuring } = this.busy;
    const drawn = this.shown?.drawn ?? undefined;
    const parts = [
      measuring ? "measuring…" : answer ? "compiling…" : layout ? "laying out…" : this.shown?.stale === true ? "before the last edits" : "",
      drawn?.headline ?? "",
      drawn?.measured?.headline ?? "",
      drawn?.before === null ? "" : (drawn?.change ?? ""),
      drawn?.device ?? "",
      this.omitted,
      ...(drawn?.measured?.notes ?? []),
      ...(drawn?.notes ?? []),
    ];
    const words = parts.filter((part) => part !== "").join(" · ");
    write(this.status, words);
    set(this.status, "title", words);
    this.element.classList.toggle("busy", answer || layout || measuring);
  }

  private tellDetails(): void {
    const model = this.model;
    const [first] = this.chosen;
    this.details.replaceChildren();
    if (model !== undefined && this.comparing) {
      this.details.append(differenceDetails(model.drawn, this.changed, this.since));
    }
    if (model !== undefined && first !== undefined && this.chosen.length === 1) {
      this.details.append(
        kernelDetails(model, first, (places, focus) => {
          this.reveal(places, focus);
        }),
      );
    }
    if (model !== undefined && this.divided !== undefined) {
      this.details.append(layoutDetails(this.divided, model.drawn));
    }
    this.element.classList.toggle("comparing", this.comparing);
    this.details.hidden = this.details.childElementCount === 0;
  }
}

function isText(tab: TabName): tab is TextTab {
  return tab !== "graph" && tab !== "memory" && tab !== "growth";
}
