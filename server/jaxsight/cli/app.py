"""The command line: its commands in groups, and the help and the errors that it prints itself."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rich_click as click

from jaxsight import __version__, extensions
from jaxsight.cli.parameters import Command, Group

_COMMANDS = {
    "Look": {
        "show": "Show the jaxpr and the shapes of a function.",
        "ask": "Answer a question about a function in few characters, for agents.",
        "figures.kernels": "Show the kernels XLA generates for a function; "
        "the target device need not be present.",
        "sourcerize": "Write a function as equivalent source in pure JAX, "
        "without classes and libraries.",
        "figures.sweep": "Show how a function's memory, kernels and estimated time grow "
        "with its sizes.",
        "figures.measure": "Run a function on this machine's device, "
        "and show what its kernels take.",
        "figures.profile": "Show which lines of your files a run spends its time on.",
        "figures.report": "Write functions, or what a run compiled, as one HTML file to send.",
    },
    "Check": {
        "check": "Trace all functions and report errors and performance problems.",
        "figures.lock": "Write what functions compile to into jaxsight.lock, "
        "in the project's root.",
        "figures.diff": "Show which functions compile to something else than in a git revision, "
        "and why.",
        "explain": "Explain a rule, a primitive or an operation, or list all rules.",
    },
    "Bugs": {},
    "Data": {},
    "Set up": {
        "targets": "List target devices, and install or remove their compilers.",
        "trust": "Trust a folder: allow editors to run its code and interpreters, "
        "subfolders included.",
        "record": "Run a program, and use what its functions are called with as their example "
        "inputs.",
        "server": "Start the language server on stdio (run by editors).",
        "mcp": "Serve coding agents over the Model Context Protocol, on stdio.",
    },
}
"""The modules of the commands, in the groups of the help, with the first sentence of each help;
extensions add theirs.

A module is imported only when its command is given: `--help` and completions must not wait for the
engine (1 s).
"""

_MODULES = {module.rpartition(".")[2]: module for group in _COMMANDS.values() for module in group}

_HELP = click.RichHelpConfiguration(
    text_markup="rich",
    text_emojis=False,
    text_paragraph_linebreaks="\n\n",
    padding_helptext_first_line=(0, 0, 1, 0),
    show_arguments=True,
)


class _Commands(Group):
    """The commands of `_COMMANDS` and of extensions, imported on use.

    They print hidden characters of arguments as escapes, also in error messages: arguments can be
    file names, by a shell's `*`.
    """

    def __init__(self, *arguments: Any, **extra: Any) -> None:
        """Create the commands as they are listed, in help and completions."""
        super().__init__(*arguments, **extra)
        added = extensions.installed().items()
        for panel, commands in _COMMANDS.items():
            own = {module.rpartition(".")[2]: help for module, help in commands.items()}
            own |= {name: each.help for name, each in added if each.group == panel}
            for name, help in own.items():
                self.add_command(Command(name, help=help, panel=panel))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is to be run, and its arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, _imported(name) if name is not None else None, rest

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Parse the arguments of all commands."""
        with _visible_complaints():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the arguments of one command, and run it."""
        with _visible_complaints():
            return super().invoke(ctx)


def _imported(name: str) -> click.Command:
    """Return a command of its module: its `app`, or what has the same name."""
    # A third of what a command imports is code that `dataclasses` compiles.
    from jaxsight.files.bytecode import cached_bytecode, file_for

    with cached_bytecode(file_for(f"command{name}"), dataclasses):
        if name in extensions.NAMES:
            module = extensions.part(name, "cli.command")
        else:
            module = importlib.import_module(f"jaxsight.cli.commands.{_MODULES[name]}")
    found = getattr(module, "app", None) or getattr(module, name)
    return found if isinstance(found, click.Command) else click.command(cls=Command)(found)


@contextmanager
def _visible_complaints() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        from jaxsight.cli.output.printing import complaint

        vars(error)["message"] = complaint(error.message)
        raise


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "rich_help_config": _HELP},
)
@click.version_option(__version__, message="jaxsight %(version)s", help="Print the version.")
def app(*, no_server: bool = False) -> None:
    """Show how JAX traces and compiles your functions: shapes, jaxprs, kernels and errors.

    Functions are traced with the example inputs in their docstrings, else as they
    are called, else with assumed inputs:

        def f(x):
            \"\"\"Return twice the sine.

            Example inputs:
                x: f32[8, 128]
            \"\"\"

    Run [bold]jaxsight COMMAND --help[/bold] for the options of a command.

    Args:
        no_server: Run the command in this process; may also follow the command.
    """
