/** The kernels as a table in Markdown, to be pasted into a report. */

import { plainInMarkdown } from "./inert";
import type { Shown } from "./messages";
import { Model } from "./model";
import { titled } from "./scene";
import { launchFigure, size } from "./words";

export function listed(shown: Shown): string {
  const { drawn } = shown;
  if (drawn === null) {
    return plainInMarkdown(shown.trouble);
  }
  const model = new Model(drawn);
  const rows = drawn.kernels.map((kernel, index) => {
    const bytes = (values: readonly { readonly bytes: number }[]): string =>
      size(values.reduce((sum, value) => sum + value.bytes, 0));
    const fed = model.fedLines(index).join(", ");
    const lines = model.linesOf(index).join(", ") || (fed && `for ${fed}`);
    return `| ${index + 1} | ${plainInMarkdown(titled(kernel))} | ${kernel.launchesKnown ? launchFigure(kernel) : "?"} | ${bytes(kernel.inputs)} | ${bytes(kernel.outputs)} | ${plainInMarkdown(kernel.endsBecause)} | ${lines} |`;
  });
  return [
    `**${plainInMarkdown(shown.function)}**: ${plainInMarkdown(drawn.headline)}`,
    "",
    "| | kernel | launches | in | out | fusion boundary | lines |",
    "|---|---|---|---|---|---|---|",
    ...rows,
    "",
    plainInMarkdown(drawn.device),
    ...drawn.notes.map(plainInMarkdown),
    "",
  ].join("\n");
}
