/**
 * The settings that people have set, and no others.
 *
 * VS Code answers a server's question for settings with defaults filled in. The editor's value wins over the project's `pyproject.toml`, so
 * a default must not pass for a wish: what nobody set is left out.
 */

import * as vscode from "vscode";

export const SECTION = "jaxsight";

type Tree = Record<string, unknown>;

/** The explicit settings of the section, as nested objects, as they hold for `scope`. */
export function explicitSettings(scope: vscode.Uri | undefined, keys: readonly string[]): Tree {
  const configuration = vscode.workspace.getConfiguration(SECTION, scope ?? null);
  const tree: Tree = {};
  for (const key of keys) {
    const value = inspected(configuration, key);
    if (value !== undefined) {
      put(tree, key.split("."), isTree(value) ? merged(configuration.inspect(key)) : value);
    }
  }
  if (inspected(configuration, SHAPE_POSITION) === undefined && othersShowTypes(scope)) {
    put(tree, SHAPE_POSITION.split("."), "line-end");
  }
  return tree;
}

const SHAPE_POSITION = "inlayHints.shapePosition";

/** Whether another extension shows types after assigned names, where ours would stand beside them: `s: f32[8]: Array`. */
function othersShowTypes(scope: vscode.Uri | undefined): boolean {
  const shows = (section: string): boolean =>
    vscode.workspace.getConfiguration(section, scope ?? null).get<boolean>("inlayHints.variableTypes") === true;
  return (
    (vscode.extensions.getExtension("detachhead.basedpyright") !== undefined && shows("basedpyright.analysis")) ||
    (vscode.extensions.getExtension("ms-python.vscode-pylance") !== undefined && shows("python.analysis"))
  );
}

/** The value of a setting that somebody has set. */
function inspected(configuration: vscode.WorkspaceConfiguration, key: string): unknown {
  const found = configuration.inspect(key);
  return found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
}

/** What the extension reads itself: the server would not know these. */
const OURS = ["kernelColours", "serverPython"];

/** The keys of the section that are the server's, from the extension's own manifest. */
export function settingKeys(): readonly string[] {
  const manifest = vscode.extensions.getExtension("jaxsight.jaxsight")?.packageJSON as
    | { contributes?: { configuration?: { properties?: Tree } } }
    | undefined;
  return Object.keys(manifest?.contributes?.configuration?.properties ?? {})
    .filter((name) => name.startsWith(`${SECTION}.`))
    .map((name) => name.slice(SECTION.length + 1))
    .filter((key) => !OURS.includes(key));
}

/** Tables are merged over the levels at which they are set, as VS Code does. */
function merged(found: { globalValue?: unknown; workspaceValue?: unknown; workspaceFolderValue?: unknown } | undefined): Tree {
  const levels = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue];
  return Object.assign({}, ...levels.filter(isTree)) as Tree;
}

function put(tree: Tree, path: string[], value: unknown): void {
  const [first, ...rest] = path;
  if (first === undefined) {
    return;
  }
  if (rest.length === 0) {
    tree[first] = value;
    return;
  }
  const below = isTree(tree[first]) ? tree[first] : {};
  tree[first] = below;
  put(below, rest, value);
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
