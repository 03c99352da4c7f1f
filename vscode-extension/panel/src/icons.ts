/** The toolbar's icons: lines in a square of 16, in the colour of the text. */

import { s } from "./dom";

const PATHS = {
  pin: "M6 2h4l-.5 5 2.5 2.5v1H4v-1L6.500 7zM8 10.500V14",
  pause: "M5.500 3v10M10.500 3v10",
  difference: "M8 2v7M4.500 5.500h7M4.500 13h7",
  copy: "M6 5V2.500h7.500V11H11M2.500 5H10v8.500H2.500z",
  save: "M8 2v8M4.500 7 8 10.500 11.500 7M2.500 13.500h11",
  list: "M2.500 4h1M5.500 4h8M2.500 8h1M5.500 8h8M2.500 12h1M5.500 12h8",
  measure: "M8 4.500a5 5 0 1 1 0 10 5 5 0 0 1 0-10zM8 7v2.500l1.500 1.500M6 1.500h4M8 1.500v3",
  fit: "M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10",
  open: "M2.500 4.500h11M2.500 8h11M2.500 11.500h11M8 2v12",
  close: "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
} as const;

export type Icon = keyof typeof PATHS;

export function icon(name: Icon): SVGSVGElement {
  return s("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: PATHS[name] }));
}
