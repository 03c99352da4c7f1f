/** A function's kernels, ready to be asked: which equations, places and kernels belong together. Knows nothing of how they are drawn. */

import { figuresOf, isMeasured } from "./launches";
import type { Divided, Drawn, Equation, Kernel, Link, Parameter, Place, Position, Range, Value } from "./messages";

export class Model {
  private readonly equations: ReadonlyMap<string, Equation>;
  /** Kernels by the paths of their equations. */
  private readonly computing = new Map<string, number[]>();

  /** The program's inputs that each kernel reads. */
  private readonly inputs = new Map<number, Parameter[]>();

  /** Whether times are measured. */
  readonly measured: boolean;

  /** The measured seconds of the device; else the estimated ones of all kernels, of each conditional one arm. */
  private readonly seconds: number;

  constructor(readonly drawn: Drawn) {
    this.measured = isMeasured(drawn);
    const unmatched = this.measured ? (drawn.measured?.unmatchedSeconds ?? 0) : 0;
    this.seconds = (figuresOf(drawn, [...drawn.kernels.keys()]).seconds ?? 0) + unmatched;
    for (const { source, target } of drawn.edges) {
      const input = source.what === "parameter" && target.what === "kernel" ? drawn.parameters[source.index] : undefined;
      if (input !== undefined) {
        this.inputs.set(target.index, [...(this.inputs.get(target.index) ?? []), input]);
      }
    }
    this.equations = new Map(drawn.equations.map((each) => [each.path, each]));
    for (const [index, kernel] of drawn.kernels.entries()) {
      for (const path of kernel.equations) {
        const found = this.computing.get(path);
        if (found === undefined) {
          this.computing.set(path, [index]);
        } else {
          found.push(index);
        }
      }
    }
  }

  equation(path: string): Equation | undefined {
    return this.equations.get(path);
  }

  kernel(index: number): Kernel {
    const found = this.drawn.kernels[index];
    if (found === undefined) {
      throw new RangeError(`there is no kernel ${index}`);
    }
    return found;
  }

  /** The time of all launches of a kernel, as it was measured, else as it is estimated. */
  secondsOf(index: number): number | null {
    const { measured, seconds } = this.kernel(index);
    return this.measured ? measured : seconds;
  }

  /** The part of all kernels' time that one takes, at most 1: arms of a conditional that are not taken may be longer. */
  timeShare(index: number): number | undefined {
    const seconds = this.secondsOf(index);
    return seconds === null || this.seconds === 0 ? undefined : Math.min(1, seconds / this.seconds);
  }

  /** What a kernel reads, with the names of the program's inputs among it. */
  inputsOf(index: number): readonly Value[] {
    const names = this.inputs.get(index) ?? [];
    const left = [...names];
    return this.kernel(index).inputs.map((value) => {
      const at = left.findIndex((input) => input.text === value.text);
      const [input] = at < 0 ? [] : left.splice(at, 1);
      return input === undefined || input.name === "" ? value : { ...value, text: `${input.name}: ${value.text}` };
    });
  }

  /** The groups around a kernel, outermost first. */
  groupsOf(index: number): readonly number[] {
    const { groups } = this.drawn;
    const around: number[] = [];
    let group = this.kernel(index).group;
    while (group >= 0) {
      around.unshift(group);
      group = groups[group]?.parent ?? -1;
    }
    return around;
  }

  /** `backward pass › block 2/6 › mlp` */
  groupName(index: number): string {
    return this.groupsOf(index).map((group) => this.drawn.groups[group]?.title ?? "").join(" › ");
  }

  /** What the user wrote at a kernel's fusion boundary, or of its first expression. */
  expression(index: number): string {
    const { endsAt, equations } = this.kernel(index);
    const end = equations.includes(endsAt) ? this.equations.get(endsAt)?.text : undefined;
    return end ?? this.sources(index)[0] ?? "";
  }

  /** What a kernel computes: of an equation around others that it computes too, only those. */
  innermost(index: number): readonly Equation[] {
    const paths = this.kernel(index).equations;
    const inner = paths.filter((path) => !paths.some((other) => other.startsWith(`${path}/`)));
    return inner.flatMap((path) => this.equations.get(path) ?? []);
  }

  /** What a kernel that computes no equation prepares something for. */
  fed(index: number): readonly Equation[] {
    return this.kernel(index).feeds.flatMap((path) => this.equations.get(path) ?? []);
  }

  /** What the user wrote of a kernel, each expression once; where they wrote nothing, the primitive; `for …` of what it feeds. */
  sources(index: number): readonly string[] {
    const computed = this.innermost(index).map((each) => each.text || each.primitive);
    const fed = this.fed(index).map((each) => `for ${each.text || each.primitive}`);
    return [...new Set([...computed, ...fed])];
  }

  /** Where a kernel is written, each place once; of one that computes nothing of the source, what it feeds. */
  placesOf(index: number): readonly Place[] {
    const computed = this.innermost(index).flatMap((each) => each.place ?? []);
    return distinct(computed.length > 0 ? computed : this.fed(index).flatMap((each) => each.place ?? []));
  }

  /** The lines (from 1) that a kernel computes something of. */
  linesOf(index: number): readonly number[] {
    return linesIn(this.innermost(index));
  }

  /** The lines (from 1) of what a kernel feeds. */
  fedLines(index: number): readonly number[] {
    return linesIn(this.fed(index));
  }

  /** The kernels that compute an equation, or something inside it. */
  kernelsOf(path: string): readonly number[] {
    const exact = this.computing.get(path);
    if (exact !== undefined) {
      return exact;
    }
    const inside = [...this.computing].filter(([other]) => other.startsWith(`${path}/`));
    return unique(inside.flatMap(([, kernels]) => kernels));
  }

  /** The paths of the equations of the innermost expression around a position, with those inside it. */
  pathsAt(uri: string, position: Position): ReadonlySet<string> {
    const around = this.drawn.equations.filter((each) => each.place?.uri === uri && holds(each.place.range, position));
    return new Set(innermost(around).map((each) => each.path));
  }

  /** The kernels of the innermost expression around a position; of what begins on its line, where there is none. */
  kernelsAt(uri: string, position: Position): readonly number[] {
    const here = this.drawn.equations.filter(
      (each) => each.place?.uri === uri && this.computing.has(each.path),
    );
    const around = here.filter((each) => each.place !== null && holds(each.place.range, position));
    const begun = here.filter((each) => each.place?.range.start.line === position.line);
    const over = here.filter((each) => each.place !== null && onLine(each.place.range, position.line));
    const chosen = around.length > 0 ? innermost(around) : begun.length > 0 ? begun : innermost(over);
    return unique(chosen.flatMap((each) => this.computing.get(each.path) ?? []));
  }

  /** How the value of the innermost expression around a position is divided; nothing where that is not certain. */
  dividedAt(uri: string, position: Position): Divided | undefined {
    const around = this.drawn.equations.filter(
      (each) => each.place?.uri === uri && holds(each.place.range, position),
    );
    const known = innermost(around).flatMap((each) => each.divided ?? []);
    const [first] = known;
    return known.every((each) => each.text === first?.text) ? first : undefined;
  }
}

/** The lines of a text that stand for the innermost expression around a position. */
export function linesAt(links: readonly Link[], uri: string, position: Position): readonly number[] {
  const here = links.filter((link) => link.uri === uri && link.range !== null);
  const around = here.filter((link) => link.range !== null && holds(link.range, position));
  const least = Math.min(...around.map((link) => extent(link.range)));
  return unique(around.filter((link) => extent(link.range) === least).map((link) => link.line));
}

/** Each place once. */
export function distinct(places: readonly Place[]): readonly Place[] {
  const known = new Map(places.map((place) => [JSON.stringify([place.uri, place.range]), place]));
  return [...known.values()];
}

export function unique(numbers: readonly number[]): readonly number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

function linesIn(equations: readonly Equation[]): readonly number[] {
  return unique(equations.flatMap((each) => (each.place === null ? [] : [each.place.range.start.line + 1])));
}

function innermost(equations: readonly Equation[]): readonly Equation[] {
  const least = Math.min(...equations.map((each) => extent(each.place?.range ?? null)));
  return equations.filter((each) => extent(each.place?.range ?? null) === least);
}

function holds(range: Range, { line, character }: Position): boolean {
  const { start, end } = range;
  const begun = line > start.line || (line === start.line && character >= start.character);
  return begun && (line < end.line || (line === end.line && character <= end.character));
}

function onLine(range: Range, line: number): boolean {
  return range.start.line <= line && line <= range.end.line;
}

/** More lines are always more than more columns. */
function extent(range: Range | null): number {
  if (range === null) {
    return Infinity;
  }
  return (range.end.line - range.start.line) * 100_000 + range.end.character - range.start.character;
}
