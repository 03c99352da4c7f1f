/**
 * A server as the host: it says `ToPanel` as server-sent events of `events`, and hears `FromPanel` as JSON that is posted to `messages`;
 * both are relative to the page's own address, which has the server's secret in it.
 */

import { write } from "./dom";
import { oneLine } from "./inert";
import { EDITOR, type FromPanel, type Host, type ToPanel } from "./messages";
import { copied, saved } from "./outside";

/** @param open makes the panel, and returns what tells it what the host says. */
export function servedHost(open: (host: Host) => (message: ToPanel) => void): void {
  const send = (message: FromPanel): void => {
    void fetch("messages", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message) }).catch(() => {
      // The stream of events says so, too.
    });
  };
  const hear = open({
    can: EDITOR,
    send: (message) => {
      if (message.type === "copy") {
        copied(message.text);
      } else if (message.type === "save") {
        saved(message.name, message.svg);
      } else {
        send(message);
      }
    },
    keep: () => {
      // The server remembers what it shows.
    },
  });
  const events = new EventSource("events");
  // A connection that comes back gets everything again.
  events.addEventListener("open", () => {
    hear({ type: "lost", lost: false });
    send({ type: "ready" });
  });
  events.addEventListener("error", () => {
    hear({ type: "lost", lost: true });
  });
  events.addEventListener("message", (event: MessageEvent<string>) => {
    const message = JSON.parse(event.data) as ToPanel;
    const title = document.querySelector("title");
    if (message.type === "show" && title !== null) {
      write(title, message.shown === null ? "jaxsight" : `${oneLine(message.shown.function)} – jaxsight`);
    }
    hear(message);
  });
}
