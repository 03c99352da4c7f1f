/**
 * The beginning of the page that is a file of its own: what it shows is in it (`server/jaxsight/page/` puts it there), else a server has it.
 */

import { textOf } from "./dom";
import { EmbeddedHost } from "./embedded";
import { inflated, layoutWorker } from "./inflated";
import type { Embedded, EmbeddedReport } from "./messages";
import { Report } from "./report";
import { servedHost } from "./served";
import { panels, wholePage } from "./start";
import { followTheme } from "./theme";

async function begin(): Promise<void> {
  followTheme();
  const data = document.querySelector("#jaxsight-data");
  const script = await layoutWorker();
  if (data === null) {
    servedHost((host) => wholePage(script, host));
    return;
  }
  const embedded = JSON.parse(await inflated(textOf(data))) as Embedded | EmbeddedReport;
  if ("report" in embedded) {
    const report = new Report(embedded.entries, embedded.report, panels(script));
    document.body.append(report.element);
    report.start();
    return;
  }
  const host = new EmbeddedHost(embedded);
  host.join(wholePage(script, host));
}

void begin();
