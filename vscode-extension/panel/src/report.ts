/**
 * A report: programs side by side, of which each is seen in a panel, beside the source. `jaxsight report` writes it.
 *
 * Each program, kernel and line has an address in the page: `#p1`, `#p1.k12`, `#p1.jaxpr.7`, all from 1.
 */

import type { App } from "./app";
import { h, on, write } from "./dom";
import { EmbeddedHost } from "./embedded";
import { COLUMNS } from "./kernel_list";
import type { Entry, Kind, Place, Report as ReportData, ReportedFinding, ReportEntry, Source } from "./messages";
import { Model } from "./model";
import { type Hit, search } from "./report_search";
import type { Panels } from "./start";
import { TextView } from "./text_view";

/** Lines of a text, of which the report has those that matter. */
const LINE = 17;
/** Milliseconds that the search waits for another key. */
const REST = 120;
const TARGET = /^#p(\d+)(?:\.k(\d+)|\.(jaxpr|stablehlo|hlo|pretty|code)\.(\d+))?$/;

/** Figures that differ from run to run. */
const INCIDENTAL: ReadonlySet<string> = new Set(["compiled in", "time (measured)"]);

/** A program in a panel, and which one it is. */
class Pane {
  readonly element: HTMLElement;
  readonly app: App;
  private readonly host: EmbeddedHost;
  private readonly picker: HTMLSelectElement;
  index = 0;

  constructor(
    private readonly entries: readonly ReportEntry[],
    panels: Panels,
    name: string,
    shown: (pane: Pane, places: readonly Place[], kernels: readonly number[]) => void,
  ) {
    this.picker = h("select", { "aria-label": `Program ${name}` }, ...entries.map((entry, at) => h("option", { value: at }, named(entry))));
    this.picker.hidden = entries.length < 2;
    this.host = new EmbeddedHost({ entries: [] }, ({ places, kernels }) => {
      shown(this, places, kernels);
    });
    this.app = panels.make(this.host, `${name}-`);
    this.host.join((message) => {
      this.app.hear(message);
    });
    this.element = h("section", { class: "pane", "aria-label": `Program ${name}` }, h("div", { class: "pane-head" }, this.picker), this.app.element);
    on(this.picker, "change", () => {
      this.show(Number(this.picker.value));
      shown(this, [], []);
    });
  }

  get entry(): ReportEntry | undefined {
    return this.entries[this.index];
  }

  show(index: number): void {
    this.index = index;
    this.picker.value = String(index);
    const entry = this.entries[index];
    this.host.show(entry === undefined ? undefined : compared(entry, this.entries));
  }
}

export class Report {
  readonly element: HTMLElement;
  private readonly panes: Pane[] = [];
  private readonly viewer = h("div", { class: "viewer" });
  private readonly found = h("div", { class: "found", hidden: true });
  private readonly count = h("p", { class: "quiet", role: "status" });
  private readonly code: TextView;
  private readonly codeName = h("h2", {});
  private readonly printed = h("section", { class: "printed", "aria-hidden": "true" });
  /** The graphs of programs, for paper: printing does not wait until they are laid out. */
  private readonly pictures = new Map<ReportEntry, SVGSVGElement>();
  private source: Source | undefined;

  constructor(
    private readonly entries: readonly ReportEntry[],
    private readonly report: ReportData,
    private readonly panels: Panels,
  ) {
    this.code = new TextView(
      "Source",
      LINE,
      {
        chosen: (line) => {
          this.lightLine(line);
        },
      },
      "code-",
    );
    const column = h("section", { class: "code", "aria-label": "Source" }, this.codeName, this.code.element);
    this.viewer.append(column);
    this.element = h("main", { class: "report" });
    this.element.append(
      this.head(),
      this.figures(),
      ...this.findings(),
      ...report.remarks.map((remark) => h("p", { class: "quiet" }, remark)),
      this.viewer,
      this.printed,
    );
    addEventListener("beforeprint", () => {
      this.printed.replaceChildren(...this.onPaper());
    });
    addEventListener("afterprint", () => {
      this.printed.replaceChildren();
    });
    addEventListener("hashchange", ({ newURL }) => {
      this.go(new URL(newURL).hash); // the page may have replaced it since, by what is shown
    });
  }

  /** The page is there: elements have sizes. */
  start(): void {
    const pane = this.addPane();
    pane.show(0);
    this.seeFunction(pane);
    this.go();
    void this.drawPictures();
  }

  private async drawPictures(): Promise<void> {
    for (const entry of this.entries) {
      if (entry.shown.drawn !== null) {
        this.pictures.set(entry, await this.panels.picture(entry.shown.drawn));
      }
    }
  }

  private head(): HTMLElement {
    const input = h("input", { type: "search", placeholder: "Search kernels, source, texts, findings", "aria-label": "Search the report" });
    let resting: ReturnType<typeof setTimeout> | undefined;
    on(input, "input", () => {
      clearTimeout(resting);
      resting = setTimeout(() => {
        this.find(input.value);
      }, REST);
    });
    on(input, "keydown", (event) => {
      if (event.key === "Escape") {
        input.value = "";
        this.find("");
      }
    });
    const beside = h("button", { type: "button", "aria-pressed": "false", hidden: this.entries.length < 2 }, "Side by side");
    on(beside, "click", () => {
      const down = this.panes.length < 2;
      beside.setAttribute("aria-pressed", String(down));
      this.sideBySide(down);
    });
    const title = h("h1", {}, this.report.title);
    const made = h("p", { class: "quiet" }, `jaxsight ${this.report.version}`);
    const tools = h("div", { class: "report-tools", role: "search" }, input, beside);
    return h("div", { class: "report-head" }, h("div", {}, title, made), tools, this.count, this.found);
  }

  /** The figures of all programs, each a column. */
  private figures(): HTMLElement {
    const names = [...new Set(this.entries.flatMap(({ figures }) => figures.map(([name]) => name)))];
    const columns = this.entries.map(({ figures }) => new Map(figures));
    const heads = this.entries.map((entry, at) => h("th", { scope: "col" }, h("a", { href: `#p${at + 1}` }, named(entry))));
    const rows = names.map((name) => {
      const cells = columns.map((column, at) => {
        const base = this.entries[at]?.against ?? null;
        const text = column.get(name) ?? "";
        const differs = base !== null && !INCIDENTAL.has(name) && columns[base]?.get(name) !== text;
        return h("td", { class: differs && "differs" }, text);
      });
      return h("tr", {}, h("th", { scope: "row" }, name), ...cells);
    });
    const troubles = this.entries.some(({ shown }) => shown.trouble !== "")
      ? [h("tr", {}, h("th", { scope: "row" }, "not compiled"), ...this.entries.map(({ shown }) => h("td", {}, shown.trouble)))]
      : [];
    const table = h(
      "table",
      {},
      h("caption", {}, "Figures"),
      h("thead", {}, h("tr", {}, h("td", {}), ...heads)),
      h("tbody", {}, ...troubles, ...rows),
    );
    return h("section", { class: "figures", "aria-label": "Figures", tabindex: 0 }, table);
  }

  private findings(): readonly HTMLElement[] {
    const { findings } = this.report;
    if (findings.length === 0) {
      return [];
    }
    const items = findings.map((finding, at) => {
      const lines = [
        h("p", {}, h("strong", { class: `severity-${finding.severity}` }, `${finding.severity}[${finding.code}]`), ` ${finding.message}`, finding.targets.length > 0 && ` (on ${finding.targets.join(", ")})`, this.whereOf(finding)),
        ...(finding.help === "" ? [] : [h("p", {}, `help: ${finding.help}`)]),
        ...finding.notes.map((note) => h("p", { class: "quiet" }, `note: ${note}`)),
      ];
      return h("li", { id: `finding-${at + 1}` }, ...lines);
    });
    return [h("section", { class: "findings" }, h("h2", {}, "Findings"), h("ul", {}, ...items))];
  }

  private whereOf({ place, function: name }: ReportedFinding): HTMLElement | string {
    const source = place === null ? undefined : this.report.sources.find(({ uri }) => uri === place.uri);
    if (place === null || source === undefined) {
      return ` (${name})`;
    }
    const line = place.range.start.line + 1;
    const at = h("button", { type: "button", class: "where" }, `${source.name}:${line}`);
    on(at, "click", () => {
      this.lightPlaces([place]);
      this.viewer.scrollIntoView({ block: "start" });
    });
    return at;
  }

  private addPane(): Pane {
    const pane = new Pane(this.entries, this.panels, String.fromCharCode(65 + this.panes.length), (shown, places, kernels) => {
      this.revealed(shown, places, kernels);
    });
    this.panes.push(pane);
    this.viewer.insertBefore(pane.element, this.viewer.lastElementChild);
    return pane;
  }

  private sideBySide(both: boolean): void {
    if (both) {
      const next = this.entries.findIndex((_, at) => at !== this.panes[0]?.index);
      this.addPane().show(next);
    } else {
      this.panes.pop()?.element.remove();
    }
    this.viewer.classList.toggle("beside", both);
    requestAnimationFrame(() => {
      this.panes[0]?.app.fit();
    });
  }

  /** Something was chosen in a panel. */
  private revealed(pane: Pane, places: readonly Place[], kernels: readonly number[]): void {
    this.seeFunction(pane);
    this.lightPlaces(places);
    const [kernel] = kernels;
    address(kernels.length === 1 && kernel !== undefined ? `#p${pane.index + 1}.k${kernel + 1}` : `#p${pane.index + 1}`);
  }

  private showSource(uri: string | undefined): void {
    const source = this.report.sources.find((each) => each.uri === uri);
    if (source !== undefined && source !== this.source) {
      this.source = source;
      write(this.codeName, source.name);
      this.code.show({ text: source.text, links: linked(source, this.entries) }, source.uri, source.numbers);
    }
  }

  /** The definition of a panel's function is seen. */
  private seeFunction({ entry }: Pane): void {
    this.showSource(entry?.shown.uri);
    const first = (entry?.shown.range?.start.line ?? -1) + 1;
    const at = this.source?.numbers.indexOf(first) ?? -1;
    this.code.reveal(at >= 0 ? at : undefined);
  }

  private lightPlaces(places: readonly Place[]): void {
    this.showSource(places[0]?.uri);
    const numbers = this.source?.numbers ?? [];
    const wanted = new Set(places.filter(({ uri }) => uri === this.source?.uri).flatMap(({ range }) => between(range.start.line, range.end.line)));
    this.code.choose(numbers.flatMap((number, at) => (wanted.has(number - 1) ? [at] : [])));
  }

  /** Lights what belongs to a line of the source in all panels. */
  private lightLine(at: number): void {
    const number = this.source?.numbers[at];
    if (this.source === undefined || number === undefined) {
      return;
    }
    this.code.choose([at]);
    for (const { app } of this.panes) {
      app.hear({ type: "cursor", uri: this.source.uri, position: { line: number - 1, character: 0 } });
    }
  }

  /** Shows what an address of the page names. */
  private go(hash = location.hash): void {
    const match = TARGET.exec(hash);
    const [pane] = this.panes;
    if (match === null || pane === undefined) {
      return;
    }
    const index = Number(match[1]) - 1;
    if (this.entries[index] === undefined) {
      return;
    }
    if (pane.index !== index) {
      pane.show(index);
      this.seeFunction(pane);
    }
    const line = Number(match[4]) - 1;
    if (match[2] !== undefined) {
      const kernel = Number(match[2]) - 1;
      if (kernel < (pane.entry?.shown.drawn?.kernels.length ?? 0)) {
        pane.app.hear({ type: "choose", kernels: [kernel] });
      }
    } else if (match[3] === "code") {
      this.lightLine(line);
    } else if (match[3] !== undefined) {
      pane.app.hear({ type: "open", kind: match[3] as Kind, line });
    }
    if (match[2] !== undefined || match[3] !== undefined) {
      this.viewer.scrollIntoView({ block: "start" });
    }
  }

  private find(text: string): void {
    const { hits, total } = search(text, this.entries, this.report);
    this.found.hidden = text.trim() === "";
    write(this.count, this.found.hidden ? "" : total > hits.length ? `${total} places, the first ${hits.length} of which are shown` : `${total} ${total === 1 ? "place" : "places"}`);
    this.found.replaceChildren(h("ul", { "aria-label": "Places found" }, ...hits.map((hit) => this.hit(hit))));
  }

  private hit({ address: to, where, text }: Hit): HTMLElement {
    const link = h("a", { href: to }, h("span", { class: "quiet" }, where), ` ${text}`);
    // The same address again leads there again.
    on(link, "click", () => {
      if (location.hash === to) {
        this.go();
      }
    });
    return h("li", {}, link);
  }

  /** What a page of paper cannot scroll to: the graph and all kernels of each program, and the source. */
  private onPaper(): readonly HTMLElement[] {
    const tables = this.entries.flatMap((entry) => {
      const { drawn } = entry.shown;
      if (drawn === null) {
        return [];
      }
      const model = new Model(drawn);
      const all = COLUMNS.map(({ name, text }) => ({ name, texts: drawn.kernels.map((_, index) => text(model, index)) }));
      const columns = all.filter(({ texts }) => texts.some((text) => text !== ""));
      const rows = drawn.kernels.map((_, index) => h("tr", {}, ...columns.map(({ texts }) => h("td", {}, texts[index]))));
      const head = h("tr", {}, ...columns.map(({ name }) => h("th", { scope: "col" }, name)));
      const table = h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows));
      return [h("section", {}, h("h2", {}, named(entry)), h("p", {}, drawn.headline), this.pictures.get(entry) ?? this.panels.columns(drawn)), table];
    });
    const sources = this.report.sources.flatMap((source) => {
      const lines = source.text.split("\n").flatMap((line, at) => {
        const [before, number] = [source.numbers[at - 1], source.numbers[at]];
        const text = `${String(number ?? "").padStart(5)}  ${line}`;
        return before !== undefined && number !== undefined && number !== before + 1 ? ["    …", text] : [text];
      });
      return [h("h2", {}, source.name), h("pre", {}, lines.join("\n"))];
    });
    return [...tables, ...sources];
  }
}

/** `loss · cuda:h100` */
export function named({ label, shown }: ReportEntry): string {
  return `${label} · ${shown.target}`;
}

/** The entry with the program that it is compared with, as an editor has that of the last save. */
export function compared(entry: ReportEntry, entries: readonly ReportEntry[]): Entry {
  const base = entry.against === null ? undefined : entries[entry.against];
  const { drawn } = entry.shown;
  const before = base?.shown.drawn ?? null;
  if (base === undefined || drawn === null || before === null) {
    return entry;
  }
  return { ...entry, shown: { ...entry.shown, comparedWith: named(base), drawn: { ...drawn, before } } };
}

/** The lines that kernels belong to. */
function linked({ uri, numbers }: Source, entries: readonly Entry[]): { line: number; path: string; uri: string; range: null }[] {
  const lines = new Set(
    entries.flatMap(({ shown }) => (shown.drawn?.equations ?? []).flatMap(({ place }) => (place?.uri === uri ? [place.range.start.line + 1] : []))),
  );
  return numbers.flatMap((number, line) => (lines.has(number) ? [{ line, path: "", uri, range: null }] : []));
}

function between(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

/** Writes where the reader is into the page's address, if the page may. */
function address(hash: string): void {
  try {
    history.replaceState(null, "", hash);
  } catch {
    // A frame has no address of its own.
  }
}
