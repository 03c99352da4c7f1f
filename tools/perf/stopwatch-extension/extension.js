// Says how long VS Code took to run the main modules of the extensions in this host, by the marks that it sets around that. (What it tells
// itself of loading has its own waiting in it.) All the marks of the host go into a file, if a variable names one.
const fs = require("node:fs");

const vscode = require("vscode");

const WILL = "code/extHost/willLoadExtensionCode/";
const DID = "code/extHost/didLoadExtensionCode/";

exports.activate = (context) => {
  const command = vscode.commands.registerCommand("stopwatch.loading", () => {
    const marks = globalThis.MonacoPerformanceMarks.getMarks();
    const file = process.env.STOPWATCH_MARKS;
    if (file) {
      fs.writeFileSync(`${file}.new`, JSON.stringify(marks));
      fs.renameSync(`${file}.new`, file);
    }
    const times = new Map(marks.map(({ name, startTime }) => [name, startTime]));
    const took = [...times.keys()]
      .filter((name) => name.startsWith(DID))
      .map((name) => name.slice(DID.length))
      .map((extension) => `${extension}=${times.get(DID + extension) - times.get(WILL + extension)}`);
    void vscode.window.showInformationMessage(`Loading: ${took.join(" ")}`);
  });
  context.subscriptions.push(command);
};
