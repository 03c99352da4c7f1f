// Starts the real servers of basedpyright and ruff, from packages of PyPI: their extensions are in no registry that tests can count on.
// Settings, hints and hovers are those of the servers.
const { LanguageClient } = require("vscode-languageclient/node");

const documentSelector = [{ language: "python", scheme: "file" }];

exports.activate = async (context) => {
  const folder = process.env.SERVERS_FOR_TESTS;
  const start = async (name, command, args) => {
    const executable = { command: `${folder}/${command}`, args };
    const client = new LanguageClient(name, name, { run: executable, debug: executable }, { documentSelector });
    context.subscriptions.push(client);
    await client.start();
  };
  await Promise.all([
    start("basedpyright", "basedpyright-langserver", ["--stdio"]),
    start("ruff", "ruff", ["server"]),
  ]);
};
