/** The kernels as a table in Markdown, to be pasted into a report. */

import { plainInMarkdown } from "./inert";
import type { Shown } from "./messages";
import { Model } from "./model";
import { titled } from "./scene";
import { duration, launchFigure, size } from "./words";

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
    const time = model.measured ? ` ${kernel.measured === null ? "" : duration(kernel.measured)} |` : "";
    return `| ${index + 1} | ${plainInMarkdown(titled(kernel))} | ${kernel.launchesKnown ? launchFigure(kernel) : "?"} | ${bytes(kernel.inputs)} | ${bytes(kernel.outputs)} | ${plainInMarkdown(kernel.endsBecause)} | ${lines} |${time}`;
  });
  return [
    `**${plainInMarkdown(shown.function)}**: ${plainInMarkdown(drawn.headline)}`,
    "",
    `| | kernel | launches | in | out | fusion boundary | lines |${model.measured ? " time |" : ""}`,
    `|---|---|---|---|---|---|---|${model.measured ? "---|" : ""}`,
    ...rows,
    "",
    plainInMarkdown(drawn.device),
    ...(drawn.measured === null ? [] : [drawn.measured.headline, ...drawn.measured.notes].map(plainInMarkdown)),
    ...drawn.notes.map(plainInMarkdown),
    "",
  ].join("\n");
}
