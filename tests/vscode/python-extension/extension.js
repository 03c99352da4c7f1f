// The part of the Python extension's public API that ours uses, over one setting. The real extension is not in any registry that tests can
// count on; its API is that of the npm package @vscode/python-extension.
const vscode = require("vscode");

const SETTING = "python.defaultInterpreterPath";

exports.activate = (context) => {
  const changed = new vscode.EventEmitter();
  const chosen = (resource) => vscode.workspace.getConfiguration(undefined, resource ?? null).get(SETTING);
  context.subscriptions.push(
    changed,
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SETTING)) {
        changed.fire({ id: "", path: "", resource: undefined });
      }
    }),
    vscode.commands.registerCommand("python.setInterpreter", async () => {
      const path = await vscode.window.showInputBox({ prompt: "Interpreter" });
      if (path) {
        await vscode.workspace.getConfiguration().update(SETTING, path, vscode.ConfigurationTarget.Workspace);
      }
    }),
  );
  const environments = {
    known: [],
    onDidChangeActiveEnvironmentPath: changed.event,
    getActiveEnvironmentPath: (resource) => ({ id: chosen(resource), path: chosen(resource) }),
    resolveEnvironment: async ({ id, path }) =>
      path === "" ? undefined : { id, path, executable: { uri: vscode.Uri.file(path) } },
  };
  return { ready: Promise.resolve(), environments };
};
