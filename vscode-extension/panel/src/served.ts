/**
 * A server as the host: through a socket, it answers the editor's own requests, and sends its notifications. The socket is beside the page's
 * own address, which has the server's secret in it.
 */

import { write } from "./dom";
import { type Cursor, Follower } from "./following";
import { oneLine } from "./inert";
import { EDITOR, type FromPanel, type Host, type Kept, type Position, type ToPanel } from "./messages";
import { copied, saved } from "./outside";

type Notification =
  | { readonly method: "jaxsight/cursor"; readonly params: { readonly textDocument: { readonly uri: string }; readonly position: Position } }
  | { readonly method: "jaxsight/panelRefresh"; readonly params: { readonly uri: string } };

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** Milliseconds before a page whose socket closed tries again: a choice, as of browsers for events. */
const PATIENCE = 3000;

/** @param open makes the panel, and returns what tells it what the host says. */
export function servedHost(open: (host: Host) => (message: ToPanel) => void): void {
  let cursor: Cursor | undefined;
  const hear = open({
    can: EDITOR,
    send: (message) => {
      send(message).catch(failed);
    },
    keep: (kept) => {
      history.replaceState(kept, "");
    },
  });
  const follower = new Follower(
    {
      cursor: () => cursor,
      request,
      execute: (command, ...texts) => request("workspace/executeCommand", { command, arguments: texts }),
      same: (one, other) => decoded(one) === decoded(other),
      left: () => {
        // The editor lights places until its cursor moves.
      },
      failed,
    },
    (message) => {
      const title = document.querySelector("title");
      if (message.type === "show" && message.shown !== null && title !== null) {
        write(title, `${oneLine(message.shown.function)} – jaxsight`);
      }
      hear(message);
    },
  );
  const send = async (message: FromPanel): Promise<void> => {
    if (message.type === "copy") {
      copied(message.text);
    } else if (message.type === "save") {
      saved(message.name, message.svg);
    } else if (message.type === "reveal") {
      await request("jaxsight/reveal", { places: message.places, focus: message.focus });
    } else {
      await follower.hear(message);
    }
  };
  const kept = (history.state as Kept | null) ?? opened();
  if (kept !== undefined) {
    follower.restore(kept);
  }
  const notified = ({ method, params }: Notification): void => {
    if (method === "jaxsight/cursor") {
      const moved = (cursor = { uri: params.textDocument.uri, position: params.position });
      follower.moved(() => cursor ?? moved);
    } else {
      // The cells of a notebook have its path.
      follower.refreshed((uri) => new URL(uri).pathname === new URL(params.uri).pathname);
    }
  };
  connect(notified, (lost) => {
    hear({ type: "lost", lost });
    if (!lost) {
      // A connection that comes back gets everything again.
      void follower.hear({ type: "ready" });
    }
  });
}

let socket: WebSocket | undefined;
let last = 0;
/** What waits for an answer: called with it, or with nothing where there will be none. */
const waiting = new Map<number, (answer?: Answer) => void>();

/** Connects to the server, again and again. @param changed hears whether the connection is lost. */
function connect(notified: (notification: Notification) => void, changed: (lost: boolean) => void): void {
  const address = new URL("socket", location.href);
  address.protocol = "ws:";
  socket = new WebSocket(address);
  socket.addEventListener("open", () => {
    changed(false);
  });
  socket.addEventListener("close", () => {
    for (const answered of waiting.values()) {
      answered();
    }
    changed(true);
    setTimeout(connect, PATIENCE, notified, changed);
  });
  socket.addEventListener("message", (event: MessageEvent<string>) => {
    const message = JSON.parse(event.data) as Answer | Notification;
    if ("id" in message) {
      waiting.get(message.id)?.(message);
    } else {
      notified(message);
    }
  });
}

async function request<Result>(method: string, params: object, signal?: AbortSignal): Promise<Result | null> {
  const [to, id] = [socket, ++last];
  if (to?.readyState !== WebSocket.OPEN) {
    throw new Error("the server has ended");
  }
  try {
    return await new Promise((resolve, reject) => {
      waiting.set(id, (answer) => {
        if (answer === undefined || answer.error !== undefined) {
          reject(new Error(answer?.error?.message ?? "the server has ended"));
        } else {
          resolve((answer.result ?? null) as Result | null);
        }
      });
      signal?.addEventListener("abort", () => {
        to.send(JSON.stringify({ method: "$/cancelRequest", params: { id } }));
        reject(new DOMException("the page asks for something else", "AbortError"));
      });
      to.send(JSON.stringify({ id, method, params }));
    });
  } finally {
    waiting.delete(id);
  }
}

function failed(): void {
  // The server's log has it, and the socket says when there is no server.
}

/** The function that the page was opened for: the server's link has it. */
function opened(): { readonly uri: string; readonly function: string } | undefined {
  const asked = new URLSearchParams(location.hash.slice(1));
  const [uri, name] = [asked.get("uri"), asked.get("function")];
  return uri === null || name === null ? undefined : { uri, function: name };
}

function decoded(uri: string): string {
  try {
    return decodeURIComponent(uri);
  } catch {
    return uri; // with a percent sign that encodes nothing
  }
}
