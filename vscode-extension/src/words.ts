/** Texts that have to be short. */

/** The first clause of a text (up to `: `, `; ` or `. `), at most `most` characters of it. */
export function firstClause(text: string, most: number): string {
  const clause = /^.*?(?=[:;.] |$)/s.exec(text)?.[0] ?? text;
  return clause.length <= most ? clause : `${clause.slice(0, most - 1)}…`;
}
