/** A page that has all answers in itself as the host: nothing is compiled or asked for, and another target is another answer. */

import type { Embedded, Entry, FromPanel, Host, Shown, ToPanel } from "./messages";
import { copied, saved } from "./outside";

export class EmbeddedHost implements Host {
  readonly can = { follow: false, compute: false };
  private readonly entries: readonly Entry[];
  private hear: ((message: ToPanel) => void) | undefined;
  private entry: Entry | undefined;

  /** @param revealed what of the source is to be seen. */
  constructor(
    embedded: Pick<Embedded, "entries">,
    private readonly revealed?: (message: FromPanel & { readonly type: "reveal" }) => void,
  ) {
    this.entries = embedded.entries;
  }

  /** @param hear tells the panel what the host says. */
  join(hear: (message: ToPanel) => void): void {
    this.hear = hear;
    this.show(this.entries[0]);
  }

  show(entry: Entry | undefined): void {
    this.entry = entry;
    this.hear?.({ type: "show", shown: entry === undefined ? null : { ...entry.shown, ...this.choices(entry) } });
    this.hear?.({ type: "swept", swept: entry?.swept ?? null });
  }

  send(message: FromPanel): void {
    switch (message.type) {
      case "content":
        this.hear?.({
          type: "content",
          kind: message.kind,
          content: this.entry?.contents[message.kind] ?? { text: "", stale: false, links: [] },
        });
        break;
      case "chooseTarget":
        this.choose((entry) => entry.shown.target === message.target && entry.shown.set === this.entry?.shown.set);
        break;
      case "chooseSet":
        this.choose((entry) => entry.shown.set === message.set && entry.shown.target === this.entry?.shown.target);
        break;
      case "copy":
        copied(message.text);
        break;
      case "save":
        saved(message.name, message.svg);
        break;
      case "reveal":
        this.revealed?.(message);
        break;
      default: // what nobody can ask for here
    }
  }

  keep(): void {
    // The page has no state that outlives it.
  }

  private choose(fits: (entry: Entry) => boolean): void {
    const found = this.entry === undefined ? undefined : this.alike(this.entry).find(fits);
    if (found !== undefined) {
      this.show(found);
    }
  }

  /** The targets and inputs that there are answers for. */
  private choices(entry: Entry): Pick<Shown, "targets" | "sets"> {
    const alike = this.alike(entry).map(({ shown }) => shown);
    return { targets: [...new Set(alike.map(({ target }) => target))], sets: [...new Set(alike.map(({ set }) => set))] };
  }

  private alike({ shown }: Entry): readonly Entry[] {
    return this.entries.filter((each) => each.shown.function === shown.function && each.shown.uri === shown.uri);
  }
}
