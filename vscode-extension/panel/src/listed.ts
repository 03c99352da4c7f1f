/** The kernels as a table in Markdown, to be pasted into a report. */

import type { Shown } from "./messages";
import { Model } from "./model";
import { size } from "./words";

export function listed(shown: Shown): string {
  const { drawn } = shown;
  if (drawn === null) {
    return shown.trouble;
  }
  const model = new Model(drawn);
  const rows = drawn.kernels.map((kernel, index) => {
    const bytes = (values: readonly { readonly bytes: number }[]): string =>
      size(values.reduce((sum, value) => sum + value.bytes, 0));
    const lines = model.linesOf(index).join(", ");
    return `| ${index + 1} | ${kernel.what} | ${kernel.launches} | ${bytes(kernel.inputs)} | ${bytes(kernel.outputs)} | ${kernel.endsBecause} | ${lines} |`;
  });
  return [
    `**${shown.function}**: ${drawn.headline}`,
    "",
    "| | kernel | launches | in | out | ends because of | lines |",
    "|---|---|---|---|---|---|---|",
    ...rows,
    "",
    drawn.device,
    ...drawn.notes,
    "",
  ].join("\n");
}
