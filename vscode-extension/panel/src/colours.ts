/** The words of a line by what they are, for colours: enough for jaxprs, StableHLO, HLO and Python alike. */

export interface Token {
  readonly text: string;
  readonly kind: "" | "comment" | "string" | "number" | "name" | "type" | "word";
}

const TOKEN = new RegExp(
  [
    String.raw`(?<comment>(?:#|\/\/).*)`,
    String.raw`(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`,
    String.raw`(?<type>\b(?:bool|pred|token|key<\w+>|[fbiuc]\w?\d+(?:_\w+)?|tensor)(?=[\[<]))`,
    String.raw`(?<name>[%@][\w.#-]+)`,
    String.raw`(?<number>\b\d[\d.]*(?:e[+-]?\d+)?\b)`,
    String.raw`(?<word>\b(?:lambda|let|in|def|return|import|from|as|if|else|raise|for|ENTRY|ROOT|HloModule|func|module)\b)`,
  ].join("|"),
  "g",
);
/** Longer lines stay plain: nobody reads colours there, and they take time. */
const LONG = 2000;

export function tokens(line: string): readonly Token[] {
  if (line.length > LONG) {
    return [{ text: line, kind: "" }];
  }
  const found: Token[] = [];
  let end = 0;
  for (const match of line.matchAll(TOKEN)) {
    if (match.index > end) {
      found.push({ text: line.slice(end, match.index), kind: "" });
    }
    const kind = Object.entries(match.groups ?? {}).find(([, text]) => (text as string | undefined) !== undefined)?.[0];
    found.push({ text: match[0], kind: (kind ?? "") as Token["kind"] });
    end = match.index + match[0].length;
  }
  if (end < line.length) {
    found.push({ text: line.slice(end), kind: "" });
  }
  return found;
}
