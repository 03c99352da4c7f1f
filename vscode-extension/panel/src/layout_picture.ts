/** Which device has which part of a value: a grid, coloured by device. */

import { h, s } from "./dom";
import type { Divided, Drawn } from "./messages";

/** Rows and columns that are drawn. */
const MOST = 16;
const WIDTH = 56;
const HEIGHT = 26;
/** Devices that a part names. */
const NAMED = 4;

export function layoutDetails(divided: Divided, drawn: Drawn): HTMLElement {
  const facts = [divided.local === "" ? "" : `per device ${divided.local}`, drawn.mesh === "" ? "" : `mesh ${drawn.mesh}`];
  const parts = divided.cells.flat().length;
  return h(
    "section",
    { class: "details layout", "aria-label": "Layout over devices" },
    h("h2", {}, divided.text),
    h("p", {}, facts.filter((fact) => fact !== "").join(" · ")),
    parts === 1 && h("p", {}, `replicated on ${drawn.devices} devices`),
    parts > 1 && picture(divided, drawn.devices),
    h("p", { class: "quiet" }, "as the program was partitioned"),
  );
}

function picture({ cells }: Divided, devices: number): SVGSVGElement {
  const rows = cells.slice(0, MOST);
  const columns = Math.min(MOST, Math.max(...rows.map((row) => row.length)));
  const width = columns * WIDTH;
  const height = rows.length * HEIGHT;
  const hidden = rows.length < cells.length || columns < (cells[0]?.length ?? 0);
  const words = `${rows.length} × ${columns} parts${hidden ? " of more" : ""}`;
  const drawing = s("svg", { class: "parts", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words });
  for (const [row, line] of rows.entries()) {
    for (const [column, cell] of line.slice(0, MOST).entries()) {
      drawing.append(part(cell, column * WIDTH, row * HEIGHT, devices));
    }
  }
  return drawing;
}

/** A part in the colour of its first device. */
function part(cell: readonly number[], x: number, y: number, devices: number): SVGGElement {
  const hue = Math.round((360 * (cell[0] ?? 0)) / Math.max(1, devices));
  return s(
    "g",
    {},
    s("title", {}, `devices ${cell.join(", ")}`),
    s("rect", { x: x + 1, y: y + 1, width: WIDTH - 2, height: HEIGHT - 2, rx: 3, fill: `hsl(${hue} 65% 50% / 0.35)` }),
    s("text", { x: x + WIDTH / 2, y: y + HEIGHT / 2 + 4, "text-anchor": "middle" }, named(cell)),
  );
}

/** `0, 4`, `0–3`, `0, 1, 2, …` */
export function named(devices: readonly number[]): string {
  const first = devices[0] ?? 0;
  const last = devices.at(-1) ?? 0;
  if (devices.length > 2 && last - first === devices.length - 1) {
    return `${first}–${last}`;
  }
  return devices.length > NAMED ? `${devices.slice(0, 2).join(", ")}, …` : devices.join(", ");
}
