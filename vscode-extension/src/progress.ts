/**
 * Progress of the server that can be cancelled, as a notification with a button. The client's library shows it in the status bar, without one.
 */

import * as vscode from "vscode";
import {
  type LanguageClient,
  type ProgressToken,
  type WorkDoneProgressBegin,
  WorkDoneProgressCancelNotification,
  type WorkDoneProgressEnd,
  type WorkDoneProgressReport,
} from "vscode-languageclient/node";

type Step = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd;

interface Bar {
  report(message: string | undefined): void;
  end(): void;
}

/** The bars of one client. */
export class ProgressBars {
  private readonly open = new Map<ProgressToken, Bar>();

  constructor(private readonly client: () => LanguageClient) {}

  /** Shows a step, or leaves it to `next`. */
  show(token: ProgressToken, step: Step, next: () => void): void {
    if (step.kind === "begin" && step.cancellable === true) {
      this.open.set(token, this.bar(token, step));
      return;
    }
    const bar = this.open.get(token);
    if (bar !== undefined && step.kind === "report") {
      bar.report(step.message);
      return;
    }
    bar?.end();
    this.open.delete(token);
    next();
  }

  private bar(token: ProgressToken, begin: WorkDoneProgressBegin): Bar {
    let end: () => void = () => undefined;
    let report: (message: string | undefined) => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const options = { location: vscode.ProgressLocation.Notification, title: begin.title, cancellable: true };
    void vscode.window.withProgress(options, (progress, cancelled) => {
      report = (message) => {
        progress.report(message === undefined ? {} : { message });
      };
      report(begin.message);
      cancelled.onCancellationRequested(() => {
        void this.client().sendNotification(WorkDoneProgressCancelNotification.type, { token });
      });
      return ended;
    });
    return {
      report: (message) => {
        report(message);
      },
      end: () => {
        end();
      },
    };
  }
}
