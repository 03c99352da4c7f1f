/** What the server answers to panels. Made from docs/schemas/panel.json by scripts/panel_types.py. */

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

export interface Place {
  readonly uri: string;
  readonly range: Range;
}

export interface Value {
  readonly text: string;
  readonly bytes: number;
}

/** Launches of one run of the program. */
export interface Launches {
  /** The most: of a conditional the arm with the most; what is unknown counts once. */
  readonly launches: number;
  /** The fewest; an unknown number of iterations counts as none. */
  readonly launchesAtLeast: number;
  /** Whether the number of iterations of every loop is known, and the kernels of every call of a library. */
  readonly launchesKnown: boolean;
}

/** What a kernel communicates; bytes are those on one device. */
export interface Collective {
  readonly kind: string;
  readonly bytes: number;
  readonly axes: readonly string[];
  /** Devices that communicate with each other; pairs of source and target for `collective-permute`. */
  readonly groups: readonly (readonly number[])[];
  readonly inserted: boolean;
  readonly async: boolean;
  /** `over data`, `in groups of 4`; empty where nobody knows. */
  readonly scope: string;
}

/** How the result of an equation is divided over devices. */
export interface Divided {
  /** `f32[8@data,16]` */
  readonly text: string;
  /** Its type on one device; empty where nobody knows. */
  readonly local: string;
  /** For each row and column of parts, the devices that have it. */
  readonly cells: readonly (readonly (readonly number[])[])[];
}

/** A kernel; its launches are those while its arm is taken. */
export interface KernelBefore extends Launches {
  readonly name: string;
  readonly kind: string;
  readonly what: string;
  readonly endsBecause: string;
  readonly equations: readonly string[];
  readonly endsAt: string;
  /** Paths of the equations that it prepares something for, where it computes none itself. */
  readonly feeds: readonly string[];
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly flops: number;
  /** Indexes of the loops that it is in, outermost first. */
  readonly loops: readonly number[];
  /** Index of the innermost branch that it is in; -1: none. */
  readonly branch: number;
  /** How often it is executed: the iterations of its loops. One execution of a sort is several launches. */
  readonly runs: number;
  /** Whether the number of iterations of all its loops is known. */
  readonly runsKnown: boolean;
  readonly recomputes: readonly string[];
  /** The line of the HLO that it stands on, from 0. */
  readonly line: number;
  readonly collective: Collective | null;
}

export interface Kernel extends KernelBefore {
  /** Index of its group; -1: of the function itself. */
  readonly group: number;
  /** An estimate, of all launches. */
  readonly seconds: number | null;
  /** Measured, of all launches; `null` where nothing was measured of the kernel. */
  readonly measured: number | null;
  /** What is known of a collective, for people. */
  readonly description: readonly string[];
}

/** Kernels of one half of a derivative, or of one call. */
export interface Group {
  readonly title: string;
  /** Index of the group around it; -1: none. */
  readonly parent: number;
  /** The call. */
  readonly place: Place | null;
}

/** What the program is given; its name is empty where nobody knows. */
export interface Parameter extends Value {
  readonly name: string;
}

export interface End {
  readonly what: "parameter" | "kernel" | "output";
  readonly index: number;
}

export interface Edge {
  readonly source: End;
  readonly target: End;
  readonly value: Value;
}

export interface Loop {
  readonly name: string;
  readonly trips: number | null;
  /** Whether each iteration copies the condition to the host and waits. */
  readonly waits: boolean;
  readonly parent: number;
  readonly equation: string;
  readonly branch: number;
  readonly carried: readonly Value[];
}

export interface Branch {
  readonly name: string;
  readonly arm: number;
  readonly arms: number;
  readonly equation: string;
  readonly loop: number;
  readonly parent: number;
}

export interface Temporary {
  readonly value: Value;
  /** Indexes of kernels. */
  readonly producer: number;
  readonly consumers: readonly number[];
  /** The path of the equation that it is the result of; empty where nobody knows. */
  readonly equation: string;
}

export interface Constant {
  readonly name: string;
  readonly value: Value;
  readonly folded: boolean;
}

export interface Equation {
  readonly path: string;
  readonly primitive: string;
  readonly outputs: readonly string[];
  /** What the user wrote there. */
  readonly text: string;
  readonly place: Place | null;
  readonly divided: Divided | null;
  /** The functions, modules and named scopes that it was created in, outermost first. */
  readonly scope: readonly string[];
  /** Whether it belongs to the backward pass of a derivative. */
  readonly backward: boolean;
}

/** Bytes; -1 where nobody knows. */
export interface Memory {
  readonly arguments: number;
  readonly outputs: number;
  readonly temporaries: number;
  readonly aliased: number;
  readonly code: number;
  readonly peak: number;
}

/** What was measured of the program on the device. */
export interface Measured {
  /** `412 µs measured (≈ 380 µs)` */
  readonly headline: string;
  /** Whether it is of the text before the last edits: then no kernel has a measured time. */
  readonly stale: boolean;
  /** The median of a call. */
  readonly seconds: number;
  /** Of it, what the device worked; `null` where nobody knows. */
  readonly deviceSeconds: number | null;
  /** Of that, what belongs to no kernel that is drawn. */
  readonly unmatchedSeconds: number;
  readonly notes: readonly string[];
}

export interface Before extends Launches {
  /** `null` until the program is compiled completely. */
  readonly memory: Memory | null;
  readonly kernels: readonly KernelBefore[];
}

export interface Drawn extends Launches {
  /** Bytes of temporaries, which may be known before all of the memory; `null` until then, -1 where nobody knows. */
  readonly assigned: number | null;
  /** The most that autotuning on the device may make of them; -1 where nobody knows. */
  readonly assignedAtMost: number | null;
  readonly headline: string;
  readonly device: string;
  /** All figures are those of one of them. */
  readonly devices: number;
  /** `data=2, model=4`; empty for one device. */
  readonly mesh: string;
  /** `null` until the program is compiled completely. */
  readonly memory: Memory | null;
  readonly kernels: readonly Kernel[];
  readonly edges: readonly Edge[];
  readonly loops: readonly Loop[];
  readonly branches: readonly Branch[];
  readonly groups: readonly Group[];
  readonly parameters: readonly Parameter[];
  readonly outputs: readonly Value[];
  readonly temporaries: readonly Temporary[];
  readonly constants: readonly Constant[];
  readonly equations: readonly Equation[];
  readonly notes: readonly string[];
  readonly change: string;
  readonly before: Before | null;
  /** `null` until the user has it measured. */
  readonly measured: Measured | null;
}

/** A statement that was skipped. */
export interface Caveat {
  readonly line: number;
  readonly reason: string;
  readonly cell?: number;
}

/** The texts that a function became; the last two are its source, written anew. */
export type Kind = "jaxpr" | "stablehlo" | "hlo" | "hlo-metadata" | "pretty" | "lax";

/** The server's answer to `jaxsight/panel`. */
export interface Shown {
  readonly function: string;
  readonly uri: string;
  readonly range: Range | null;
  readonly set: string;
  readonly sets: readonly string[];
  readonly target: string;
  readonly targets: readonly string[];
  readonly stale: boolean;
  readonly trouble: string;
  /** URIs of the texts that there are. */
  readonly documents: Readonly<Partial<Record<Kind, string>>>;
  /** Whether the function can be measured on the target: a device that is there. */
  readonly measurable: boolean;
  readonly drawn: Drawn | null;
  /** What `drawn.before` is, where it is not the program of the last save. */
  readonly comparedWith?: string;
  /** The assumed inputs in words; empty where somebody wrote them. */
  readonly assumed: string;
  /** Whether the whole module ran. */
  readonly complete?: boolean;
  readonly caveats?: readonly Caveat[];
}

export interface Link {
  readonly line: number;
  readonly path: string;
  readonly uri: string;
  readonly range: Range | null;
}

export interface Content {
  readonly text: string;
  readonly stale: boolean;
  readonly links: readonly Link[];
}

/** An element of the curves of a sweep: what it shows is its text, else its tooltip. */
export interface Shape {
  readonly tag: "text" | "line" | "polyline" | "circle";
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface Picture {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly shapes: readonly Shape[];
}

/** The server's answer to `jaxsight/sweep`: how figures grow with sizes; before a sweep, only what may be swept. */
export interface Swept {
  /** `B=1..64`; empty where nothing has a size. */
  readonly suggested: string;
  readonly sizes: readonly string[];
  readonly picture: Picture | null;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly remarks: readonly string[];
  readonly trouble: string;
}
