/**
 * Text of a workspace as it may be shown: characters that reorder a line, or that nobody sees, are written as Python writes them in a
 * string. The same as `jaxsight/text/inert.py`, for what the server must hand over exactly because it comes back.
 */

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\u034F\u115F\u1160\u17B4\u17B5\u3164\uFFA0]/gu;
/** What a joiner may stand between: emoji, and letters of scripts that need it. */
const JOINED_BEFORE = /[\p{Lo}\p{Mc}\p{Mn}\p{Sk}\p{So}]$/u;
const JOINED_AFTER = /^[\p{Lo}\p{Mc}\p{Mn}\p{Sk}\p{So}]/u;

/** The text with hidden characters as escapes; line feeds and tabs stay. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (char, at: number) => {
    if (char === "\n" || char === "\t") {
      return char;
    }
    const joins = char === "\u200C" || char === "\u200D";
    if (joins && JOINED_BEFORE.test(text.slice(0, at)) && JOINED_AFTER.test(text.slice(at + 1))) {
      return char;
    }
    return escaped(char);
  });
}

/** The same on one line. */
export function oneLine(text: string): string {
  return visible(text).replace(/\n/g, "\\n").replace(/\t/g, "\\t");
}

/** Plain text in Markdown, in a cell of a table too: nothing of it is markup. */
export function plainInMarkdown(text: string): string {
  return oneLine(text).replace(/[\\`*_{}[\]<>~|!&$@#]|:(?=\/\/)|(?<=www)\./gi, "\\$&");
}

function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (char === "\r") {
    return "\\r";
  }
  const digits = code.toString(16);
  if (code < 0x100) {
    return `\\x${digits.padStart(2, "0")}`;
  }
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}
