/**
 * A server as the host: it answers the editor's own requests, which are posted to `requests`, and sends its notifications as server-sent
 * events of `events`; both are relative to the page's own address, which has the server's secret in it.
 */

import { write } from "./dom";
import { type Cursor, Follower } from "./following";
import { oneLine } from "./inert";
import { EDITOR, type FromPanel, type Host, type Kept, type Position, type ToPanel } from "./messages";
import { copied, saved } from "./outside";

type Notification =
  | { readonly method: "jaxsight/cursor"; readonly params: { readonly textDocument: { readonly uri: string }; readonly position: Position } }
  | { readonly method: "jaxsight/panelRefresh"; readonly params: { readonly uri: string } };

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
  const events = new EventSource("events");
  // A connection that comes back gets everything again.
  events.addEventListener("open", () => {
    hear({ type: "lost", lost: false });
    void follower.hear({ type: "ready" });
  });
  events.addEventListener("error", () => {
    hear({ type: "lost", lost: true });
  });
  events.addEventListener("message", (event: MessageEvent<string>) => {
    const { method, params } = JSON.parse(event.data) as Notification;
    if (method === "jaxsight/cursor") {
      const moved = (cursor = { uri: params.textDocument.uri, position: params.position });
      follower.moved(() => cursor ?? moved);
    } else {
      // The cells of a notebook have its path.
      follower.refreshed((uri) => new URL(uri).pathname === new URL(params.uri).pathname);
    }
  });
}

async function request<Answer>(method: string, params: object, signal?: AbortSignal): Promise<Answer | null> {
  const response = await fetch("requests", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ method, params }),
    signal: signal ?? null,
  });
  if (!response.ok) {
    throw new Error((await response.text()).trim());
  }
  return (await response.json()) as Answer | null;
}

function failed(): void {
  // The server's log has it, and the stream of events says when there is no server.
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
