/**
 * What the panel and its host say to each other, and the data that it shows. Types, all but one value: both sides import them.
 *
 * What the server answers is in `shown.ts`, which is made from `docs/schemas/panel.json`; docs/protocol.md describes it.
 */

import type { Content, Kind, Place, Position, Shown, Swept } from "./shown";

export type * from "./shown";

/** Whether the panel keeps its function when the cursor goes to another one, and whether it keeps its picture while the text changes. */
export interface Following {
  readonly pinned: boolean;
  readonly paused: boolean;
}

/** What a panel keeps over a reload of the window. */
export interface Kept extends Following {
  readonly uri: string;
  readonly function: string;
}

/** Answers that a page has in itself: of one function, or of several, for several targets. */
export interface Embedded {
  readonly entries: readonly Entry[];
}

/** A program of a report; its figures are names and words. */
export interface ReportEntry extends Entry {
  readonly label: string;
  readonly figures: readonly (readonly [string, string])[];
  /** The index of the entry that it is compared with. */
  readonly against: number | null;
}

/** Lines of a file that kernels belong to, with their numbers. */
export interface Source {
  readonly uri: string;
  readonly name: string;
  readonly numbers: readonly number[];
  readonly text: string;
}

export interface ReportedFinding {
  readonly code: string;
  readonly severity: string;
  readonly function: string;
  readonly place: Place | null;
  readonly message: string;
  readonly help: string;
  readonly notes: readonly string[];
  /** Those of the function's targets that it is reported for; empty: all. */
  readonly targets: readonly string[];
}

/** What a report has besides its programs. */
export interface Report {
  readonly title: string;
  readonly version: string;
  readonly sources: readonly Source[];
  readonly findings: readonly ReportedFinding[];
  readonly remarks: readonly string[];
}

export interface EmbeddedReport {
  readonly entries: readonly ReportEntry[];
  readonly report: Report;
}

/** One answer, and the texts that its documents have; a document without a text is not offered. */
export interface Entry {
  readonly shown: Shown;
  readonly contents: Readonly<Partial<Record<Kind, Content>>>;
  readonly swept: Swept | null;
}

export type ToPanel =
  /** Another function, or other kernels; `null`: there is none at the cursor yet. */
  | { readonly type: "show"; readonly shown: Shown | null }
  /** An answer is awaited. */
  | { readonly type: "busy"; readonly busy: boolean }
  /** The function is being measured. */
  | { readonly type: "measuring"; readonly measuring: boolean }
  | { readonly type: "cursor"; readonly uri: string; readonly position: Position }
  | { readonly type: "content"; readonly kind: Kind; readonly content: Content }
  | { readonly type: "swept"; readonly swept: Swept | null }
  | { readonly type: "following"; readonly following: Following }
  /** Kernels are chosen, as if by the user. */
  | { readonly type: "choose"; readonly kernels: readonly number[] }
  /** A line of a text, from 0, is to be seen. */
  | { readonly type: "open"; readonly kind: Kind; readonly line: number }
  /** The host cannot be reached, or can again. */
  | { readonly type: "lost"; readonly lost: boolean };

export type FromPanel =
  | { readonly type: "ready" }
  /** Light these places of the source; `focus`: go there. They are those of the kernels that are chosen, if any is. */
  | { readonly type: "reveal"; readonly places: readonly Place[]; readonly focus: boolean; readonly kernels: readonly number[] }
  | { readonly type: "content"; readonly kind: Kind }
  /** Sweep the function over sizes such as `B=1..64`; none: say what may be swept. */
  | { readonly type: "sweep"; readonly sizes: string; readonly figure: string }
  | { readonly type: "chooseSet"; readonly set: string }
  | { readonly type: "chooseTarget"; readonly target: string }
  | { readonly type: "measure" }
  | { readonly type: "follow"; readonly following: Following }
  | { readonly type: "copy"; readonly text: string; readonly what: string }
  | { readonly type: "save"; readonly name: string; readonly svg: string };

/** What a host can do. */
export interface Abilities {
  /** It follows a cursor in an editor. */
  readonly follow: boolean;
  /** It measures, sweeps, and compiles for other targets. */
  readonly compute: boolean;
}

export const EDITOR: Abilities = { follow: true, compute: true };

/** What the panel asks of its host: VS Code, a server, a page that has all in itself; tests bring their own. */
export interface Host {
  readonly can: Abilities;
  send(message: FromPanel): void;
  keep(kept: Kept): void;
}
