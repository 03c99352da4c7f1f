/**
 * What a panel is shown, and when: it follows the cursor of an editor. The panels of VS Code and of a page in a browser both run this; how
 * they reach the server and the editor is theirs.
 */

import { oneLine } from "./inert";
import type { Content, Following, FromPanel, Kept, Kind, Position, Shown, Swept, ToPanel } from "./messages";

/** Milliseconds that the cursor rests before another function is asked for. */
const REST = 150;

/** Where a cursor is, in a document that functions are written in. */
export interface Cursor {
  readonly uri: string;
  readonly position: Position;
}

type Asked = Cursor | { readonly uri: string; readonly function: string };

export interface Editor {
  cursor(): Cursor | undefined;
  /** Sends a request to the server; nothing, where there is no answer. */
  request<Answer>(method: string, params: object, signal?: AbortSignal): Promise<Answer | null | undefined>;
  execute(command: string, ...texts: readonly string[]): Promise<unknown>;
  /** Whether two spellings of a URI name one document. */
  same(one: string, other: string): boolean;
  /** Another function is shown. */
  left(): void;
  /** A request failed. */
  failed(error: unknown): void;
}

export class Follower {
  private following: Following = { pinned: false, paused: false };
  private shown: Shown | undefined;
  /** The function of before a reload, or that the panel was opened for, until it is shown. */
  private kept: Pick<Kept, "uri" | "function"> | undefined;
  private asking: AbortController | undefined;
  private sweeping: AbortController | undefined;
  private resting: ReturnType<typeof setTimeout> | undefined;

  /** @param tell tells the panel what it shows. */
  constructor(
    private readonly editor: Editor,
    private readonly tell: (message: ToPanel) => void,
  ) {}

  /** Begins with what a panel showed before. */
  restore(kept: Pick<Kept, "uri" | "function"> & Partial<Following>): void {
    this.kept = kept;
    this.following = { pinned: kept.pinned ?? false, paused: kept.paused ?? false };
  }

  /** Gives up what is asked for: the panel is closed. */
  rest(): void {
    clearTimeout(this.resting);
    this.asking?.abort();
    this.sweeping?.abort();
    this.shown = undefined;
  }

  /** Hears the panel; what is not about the function that is shown is the host's. */
  async hear(message: FromPanel): Promise<void> {
    switch (message.type) {
      case "ready":
        this.tell({ type: "following", following: this.following });
        this.tell({ type: "show", shown: this.shown ?? null });
        this.again();
        break;
      case "follow":
        this.following = message.following;
        this.again();
        break;
      case "content":
        await this.content(message.kind);
        break;
      case "sweep":
        await this.sweep(message.sizes, message.figure);
        break;
      case "chooseSet":
        if (this.shown !== undefined) {
          await this.editor.execute("jaxsight.chooseSet", this.shown.uri, this.shown.function, message.set);
          this.again();
        }
        break;
      case "chooseTarget":
        if (this.shown !== undefined) {
          await this.editor.execute("jaxsight.chooseTarget", message.target, this.shown.uri);
          this.again();
        }
        break;
      case "measure":
        await this.measure();
        break;
      default:
    }
  }

  /** The cursor has moved. */
  moved(at: () => Cursor): void {
    const { uri, position } = at();
    this.tell({ type: "cursor", uri, position });
    const { range } = this.shown ?? {};
    const inside =
      range !== undefined &&
      range !== null &&
      this.editor.same(this.shown?.uri ?? "", uri) &&
      range.start.line <= position.line &&
      position.line <= range.end.line;
    if (!inside && !this.following.pinned && !this.following.paused) {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => {
        this.ask([at()]);
      }, REST);
    }
  }

  /** There are new answers about files. */
  refreshed(isOf: (uri: string) => boolean): void {
    if (this.shown === undefined || isOf(this.shown.uri)) {
      this.again();
    }
  }

  /** There may be more to tell of what is shown. */
  again(): void {
    const { paused, pinned } = this.following;
    const known = this.shown ?? this.kept;
    if (paused && this.shown !== undefined) {
      return;
    }
    const asked: Asked[] = known === undefined ? [] : [{ uri: known.uri, function: known.function }];
    const cursor = this.editor.cursor();
    if (cursor !== undefined) {
      this.tell({ type: "cursor", ...cursor });
      // A function around the cursor goes first; where there is none, the one that is shown stays.
      if (pinned && known !== undefined) {
        asked.push(cursor);
      } else {
        asked.unshift(cursor);
      }
    }
    this.ask(asked);
  }

  /** Asks the server, the next where the one before has no answer; what was asked before is given up. */
  private ask(asked: readonly Asked[]): void {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.tell({ type: "busy", busy: true });
    this.answer(asked, asking.signal)
      .catch((error: unknown) => {
        if (!asking.signal.aborted) {
          this.editor.failed(error);
        }
      })
      .finally(() => {
        if (this.asking === asking) {
          this.tell({ type: "busy", busy: false });
        }
      });
  }

  private async answer(asked: readonly Asked[], signal: AbortSignal): Promise<void> {
    for (const each of asked) {
      const shown = await this.editor.request<Shown>("jaxsight/panel", each, signal);
      if (signal.aborted) {
        return;
      }
      if (shown !== undefined && shown !== null) {
        this.show(shown);
        return;
      }
    }
  }

  private show(shown: Shown): void {
    if (this.shown?.function !== shown.function || this.shown.uri !== shown.uri) {
      this.editor.left();
      this.sweeping?.abort();
    }
    this.shown = shown;
    this.kept = undefined;
    this.tell({ type: "show", shown });
  }

  /** Has what is shown measured; the server asks before, shows its progress, and says when there are figures. */
  private async measure(): Promise<void> {
    if (this.shown === undefined) {
      return;
    }
    this.tell({ type: "measuring", measuring: true });
    try {
      await this.editor.execute("jaxsight.measure", this.shown.uri, this.shown.function, "wait");
    } finally {
      this.tell({ type: "measuring", measuring: false });
    }
  }

  /** Asks for a sweep of the function that is shown; one before, or of another function, is given up. */
  private async sweep(sizes: string, figure: string): Promise<void> {
    this.sweeping?.abort();
    if (this.shown === undefined) {
      return;
    }
    const { signal } = (this.sweeping = new AbortController());
    const params = { uri: this.shown.uri, function: this.shown.function, sizes, figure };
    const swept = await this.editor.request<Swept>("jaxsight/sweep", params, signal);
    if (!signal.aborted) {
      this.tell({ type: "swept", swept: swept ?? null });
    }
  }

  private async content(kind: Kind): Promise<void> {
    const uri = this.shown?.documents[kind];
    const asked = this.shown;
    if (uri === undefined) {
      return;
    }
    const tell = (content: Content): void => {
      if (this.shown === asked) {
        this.tell({ type: "content", kind, content });
      }
    };
    try {
      const content = await this.editor.request<Content>("jaxsight/textDocumentContent", { uri });
      if (content === undefined || content === null) {
        throw new Error("no answer");
      }
      tell(content);
    } catch (error) {
      // The tab would wait for it.
      const words = oneLine(error instanceof Error ? error.message : String(error));
      tell({ text: `# cannot be shown: ${words}\n`, stale: false, links: [] });
      throw error;
    }
  }
}
