"""Completion in shells: `--install-completion` and `--show-completion`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
from click.decorators import FC
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

PROGRAM = "jaxsight"

_SCRIPTS = {
    "bash": ".bash_completions/jaxsight.sh",
    "zsh": ".zfunc/_jaxsight",
    "fish": ".config/fish/completions/jaxsight.fish",
}
"""Where shells have the scripts, below the home folder."""
_READ_BY = {
    "bash": (".bashrc", "source ~/.bash_completions/jaxsight.sh"),
    "zsh": (".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
}
"""The line that reads the script, and its file. Fish needs none."""


@add_completion_class
class PowerShellComplete(ShellComplete):
    """Completion in PowerShell, which click lacks."""

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $Env:COMP_WORDS = $commandAst.ToString()
    $Env:COMP_WORD = $wordToComplete
    $Env:%(complete_var)s = "powershell_complete"
    %(prog_name)s | ForEach-Object {
        $value, $help = $_ -Split ":::"
        [System.Management.Automation.CompletionResult]::new(
            $value, $value, 'ParameterValue', $help)
    }
    $Env:%(complete_var)s = $Env:COMP_WORDS = $Env:COMP_WORD = ""
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words, and the one at the cursor."""
        words, word = split_arg_string(os.environ["COMP_WORDS"])[1:], os.environ["COMP_WORD"]
        return (words[:-1] if word else words), word

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the completions but for names of files, which PowerShell completes itself."""
        found = super().get_completions(args, incomplete)
        return [item for item in found if item.type == "plain"]

    def format_completion(self, item: CompletionItem) -> str:
        """Return a completion and its help, which PowerShell requires."""
        return f"{item.value}:::{item.help or item.value}"


def option(name: str, run: Callable[[str, str], None], help: str) -> Callable[[FC], FC]:
    """Return an option that runs a function, with the name and the script of the user's shell."""

    def act(context: click.Context, _: click.Parameter, is_given: bool) -> None:
        if is_given and not context.resilient_parsing:
            shell = "powershell" if os.name == "nt" else Path(os.environ.get("SHELL", "")).name
            kind = get_completion_class(shell)
            if kind is None:
                raise click.UsageError(f"no completion for the shell {shell or 'of this system'}")
            script = kind(context.command, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source()
            run(shell, script)
            context.exit()

    return click.option(
        name, is_flag=True, is_eager=True, expose_value=False, callback=act, help=help
    )


def show(_: str, script: str) -> None:
    """Print the script."""
    from jaxsight.cli.output.printing import print_document

    print_document(script)


def install(shell: str, script: str) -> None:
    """Write the script to where the shell finds it, and the line that reads it.

    Raises:
        UsageError: a file cannot be written, or only the user knows where.
    """
    from jaxsight.cli.errors import CommandError
    from jaxsight.cli.output.printing import Printer, write_file
    from jaxsight.files import reading

    if shell not in _SCRIPTS:
        raise click.UsageError("add the output of `jaxsight --show-completion` to $PROFILE")
    home = Path.home()
    path = home / _SCRIPTS[shell]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, script.encode())
        if shell in _READ_BY:
            name, line = _READ_BY[shell]
            text = reading.text(home / name, strict=False) if reading.exists(home / name) else ""
            if line not in text.splitlines():
                write_file(home / name, f"{text.rstrip()}\n{line}\n".lstrip().encode())
    except (CommandError, OSError, reading.UnreadableError) as error:
        raise click.UsageError(str(error)) from error
    Printer().print(f"{shell} completion is in {path}; restart the shell")
