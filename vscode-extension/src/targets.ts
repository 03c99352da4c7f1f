/** The list of targets to choose from, with what each needs, and the installation of compilers. */

import * as vscode from "vscode";

import type { Server } from "./server";

/** `jaxsight/targets`: see `docs/protocol.md`. */
interface Offers {
  readonly active: string;
  readonly configured: string;
  readonly jax: string;
  readonly targets: readonly Offer[];
  readonly compilers: readonly Compiler[];
}

interface Offer {
  readonly target: string;
  readonly group: "here" | "gpu" | "tpu" | "several" | "ssh";
  readonly title: string;
  readonly figures: string;
  readonly state: "ready" | "needs" | "cannot";
  readonly detail: string;
  readonly compiler: string;
  readonly active: boolean;
  readonly approved: boolean;
}

interface Compiler {
  readonly platform: string;
  readonly title: string;
  readonly download: number;
  readonly installed: readonly string[];
  readonly disk: number;
}

interface Item extends vscode.QuickPickItem {
  readonly offer?: Offer;
  readonly run?: () => unknown;
}

const GROUPS = {
  here: "This machine",
  gpu: "GPUs that are not here",
  tpu: "TPUs",
  several: "Several devices",
  ssh: "Other machines, over ssh",
} as const;
const SIGNS = { ready: "$(check)", needs: "$(cloud-download)", cannot: "$(circle-slash)" } as const;
const INSTALL: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("cloud-download"),
  tooltip: "Install now",
};
const CHOOSE = "jaxsight.chooseTarget";
const INSTALL_COMPILER = "jaxsight.installTarget";

export class Targets implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.subscriptions = vscode.Disposable.from(
      vscode.commands.registerCommand("jaxsight.pickTarget", () => this.pick()),
      vscode.commands.registerCommand("jaxsight.installCompiler", () => this.pickCompiler()),
    );
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private async offers(): Promise<Offers | undefined> {
    await this.server.whenStarted();
    const uri = pythonFile()?.toString();
    return this.server.request<Offers>("jaxsight/targets", uri === undefined ? {} : { uri });
  }

  /** Shows the targets; the one that is picked is shown from then on, and its compiler offered where it is missing. */
  private async pick(): Promise<void> {
    const picker = vscode.window.createQuickPick<Item>();
    picker.title = "Target to show kernels for";
    picker.placeholder = "Search by name, device or figure";
    picker.matchOnDescription = true;
    picker.matchOnDetail = true;
    picker.busy = true;
    picker.onDidHide(() => {
      picker.dispose();
    });
    picker.onDidTriggerItemButton(({ item }) => {
      picker.hide();
      void install(item.offer?.compiler ?? "");
    });
    picker.onDidAccept(() => {
      const [item] = picker.selectedItems;
      picker.hide();
      if (item?.offer === undefined) {
        item?.run?.();
      } else {
        void choose(item.offer.target);
      }
    });
    picker.show();
    const offers = await this.offers();
    picker.busy = false;
    picker.items = offers === undefined ? [] : [...items(offers), ...others(offers)];
    picker.activeItems = picker.items.filter((item) => item.offer?.active === true && item.offer.approved);
  }

  private async pickCompiler(): Promise<void> {
    const offers = await this.offers();
    const items = (offers?.compilers ?? []).map((compiler) => ({
      label: compiler.title,
      description: compiler.installed.length > 0 ? `installed for JAX ${compiler.installed.join(", ")}` : "not installed",
      detail: `about ${compiler.download} MB to download` + (compiler.disk > 0 ? `; ${compiler.disk} MB on disk now` : ""),
      platform: compiler.platform,
    }));
    const picked = await vscode.window.showQuickPick(items, { title: "Compiler to install" });
    if (picked !== undefined) {
      await install(picked.platform);
    }
  }
}

function items(offers: Offers): Item[] {
  return offers.targets.flatMap((offer, index) => {
    const isFirst = offers.targets[index - 1]?.group !== offer.group;
    const separator = { label: GROUPS[offer.group], kind: vscode.QuickPickItemKind.Separator };
    const description = [offer.title, offer.figures, offer.active ? "current" : ""].filter((part) => part !== "");
    const item: Item = {
      label: offer.target,
      description: description.join(" · "),
      detail: `${offer.approved ? SIGNS[offer.state] : "$(shield)"} ${offer.detail}`,
      ...(offer.compiler === "" ? {} : { buttons: [INSTALL] }),
      offer,
    };
    return isFirst ? [separator, item] : [item];
  });
}

/** What is not a target of the list. */
function others(offers: Offers): Item[] {
  return [
    ...(offers.targets.some((offer) => offer.group === "ssh")
      ? []
      : [{ label: GROUPS.ssh, kind: vscode.QuickPickItemKind.Separator }]),
    {
      label: "ssh://…",
      description: "the GPU of another machine, or any target compiled there",
      run: () => ask("ssh://", "ssh://HOST, or ssh://HOST/cuda:h100"),
    },
    { label: "More", kind: vscode.QuickPickItemKind.Separator },
    {
      label: "Another number of devices…",
      description: "such as cuda:h100x4 or tpu:v5e:2x4",
      run: () => ask(offers.active, "A target with its number of devices"),
    },
    {
      label: "Target of the settings",
      description: offers.configured === "" ? "an H100 if its compiler is installed, else this CPU" : offers.configured,
      run: () => choose(""),
    },
    {
      label: "Change the setting…",
      description: "jaxsight.target, for all windows or this project",
      run: () => vscode.commands.executeCommand("workbench.action.openSettings", "jaxsight.target"),
    },
  ];
}

async function ask(value: string, prompt: string): Promise<void> {
  const selection: [number, number] = [value.length, value.length];
  const name = await vscode.window.showInputBox({ title: "Target to show kernels for", prompt, value, valueSelection: selection });
  if (name !== undefined && name.trim() !== "") {
    await choose(name.trim());
  }
}

/** The server says what is wrong with a name, and offers to install what is missing. */
async function choose(target: string): Promise<void> {
  const uri = pythonFile()?.toString();
  await vscode.commands.executeCommand(CHOOSE, target, ...(uri === undefined ? [] : [uri]));
}

/** The server asks first, with the size and the origin of the download. */
async function install(platform: string): Promise<void> {
  const uri = pythonFile()?.toString();
  await vscode.commands.executeCommand(INSTALL_COMPILER, platform, ...(uri === undefined ? [] : [uri]));
}

/** The file of the active editor, whose project's JAX a target is for. */
function pythonFile(): vscode.Uri | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return document?.languageId === "python" && document.uri.scheme === "file" ? document.uri : undefined;
}
