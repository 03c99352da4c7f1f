/** The words of a line by what they are, for colours: enough for jaxprs, StableHLO, HLO and Python alike. */

export interface Token {
  readonly text: string;
  readonly kind: "" | "comment" | "string" | "number" | "name" | "type" | "word";
}

const TOKEN = new RegExp(
  [
    String.raw`(?<comment>#.*|^\s*\/\/.*)`,
    String.raw`(?<string>"""(?:[^\\]|\\.)*?(?:"""|\\?$)|'''(?:[^\\]|\\.)*?(?:'''|\\?$)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')`,
    String.raw`(?<type>\b(?:bool|pred|token|key<\w+>|[fbiuc]\w?\d+(?:_\w+)?|tensor)(?=[\[<]))`,
    String.raw`(?<name>[%@][\w.#-]+)`,
    String.raw`(?<number>\b\d[\d.]*(?:e[+-]?\d+)?\b)`,
    String.raw`(?<word>\b(?:lambda|let|in|class|def|return|import|from|as|if|elif|else|with|try|except|finally|yield|raise|for|ENTRY|ROOT|HloModule|func|module)\b)`,
  ].join("|"),
  "g",
);
/** Longer lines stay plain: nobody reads colours there, and they take time. */
const LONG = 2000;

/**
 * The words of a line.
 *
 * @param opened the quotes of a string of Python that goes on from the line before.
 */
export function tokens(line: string, opened: Quotes | "" = ""): readonly Token[] {
  if (line.length > LONG) {
    return [{ text: line, kind: "" }];
  }
  if (opened !== "") {
    const after = closing(line, opened, 0);
    return after === -1 ? [{ text: line, kind: "string" }] : [{ text: line.slice(0, after), kind: "string" }, ...tokens(line.slice(after))];
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

const QUOTES = ['"""', "'''"] as const;
export type Quotes = (typeof QUOTES)[number];
/** What may have quotes in it that open nothing, and what does. */
const EDGE = /#.*|"""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g;

/** Which string of Python goes on after a line; `opened` is the one before it. */
export function goesOn(line: string, opened: Quotes | ""): Quotes | "" {
  let open = opened;
  let at = 0;
  for (;;) {
    if (open === "") {
      EDGE.lastIndex = at;
      const edge = EDGE.exec(line)?.[0];
      if (edge === undefined) {
        return "";
      }
      at = EDGE.lastIndex;
      open = QUOTES.find((each) => each === edge) ?? "";
    } else {
      at = closing(line, open, at);
      if (at === -1) {
        return open;
      }
      open = "";
    }
  }
}

/** Where a string has ended, or -1. */
function closing(line: string, quotes: Quotes, from: number): number {
  for (let at = from; at < line.length; at += line[at] === "\\" ? 2 : 1) {
    if (line.startsWith(quotes, at)) {
      return at + quotes.length;
    }
  }
  return -1;
}
