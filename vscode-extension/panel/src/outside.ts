/** What a page in a browser does for its user where an editor is not there to do it. */

import { h, write } from "./dom";

export function copied(text: string): void {
  void navigator.clipboard.writeText(text).catch(() => {
    // A frame may not be allowed to: what is selected can be copied everywhere.
    const area = h("textarea", { "aria-hidden": "true", class: "probe" });
    write(area, text);
    document.body.append(area);
    area.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- there is no other way in such a frame
    document.execCommand("copy");
    area.remove();
  });
}

export function saved(name: string, svg: string): void {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  h("a", { href: url, download: name.replace(/[^\p{L}\p{N}_.-]/gu, "_") }).click();
  URL.revokeObjectURL(url);
}
