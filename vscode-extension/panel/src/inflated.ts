/** Texts that a page has in itself, compressed: Base64 of what `zlib` calls raw deflate. */

import { textOf } from "./dom";

export async function inflated(base64: string): Promise<string> {
  const packed = Uint8Array.from(atob(base64.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

/** The script of the layout's worker, which each page has in itself. */
export function layoutWorker(): Promise<string> {
  const layout = document.querySelector("#jaxsight-layout");
  return inflated(layout === null ? "" : textOf(layout));
}
