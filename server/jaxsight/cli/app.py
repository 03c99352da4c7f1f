"""The Typer application: its commands, and the help and the errors that it prints itself."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from jaxsight import __version__, extensions
from jaxsight.cli.plain_arguments import convert_without_pydantic

_COMMANDS = {
    "show": "Show the jaxpr and the shapes of a function.",
    "ask": "Answer a question about a function in few characters, for agents.",
    "sourcerize": "Write a function as equivalent source in pure JAX, "
    "without classes and libraries.",
    "figures.kernels": "Show the kernels XLA generates for a function; "
    "the target device need not be present.",
    "figures.sweep": "Show how a function's memory, kernels and estimated time grow "
    "with its sizes.",
    "figures.measure": "Run a function on this machine's device, and show what its kernels take.",
    "record": "Run a program, and use what its functions are called with as their example inputs.",
    "figures.profile": "Show which lines of your files a run spent its time on, from its profile.",
    "figures.report": "Write functions, or what a run compiled, as one HTML file to send.",
    "check": "Trace all functions and report errors and performance problems.",
    "figures.lock": "Write what functions compile to into jaxsight.lock, in the project's root.",
    "figures.diff": "Show which functions compile to something else than in a git revision, "
    "and why.",
    "explain": "Explain a rule, a primitive or an operation, or list all rules.",
    "trust": "Trust a folder: allow editors to run its code and interpreters, subfolders included.",
    "server": "Start the language server on stdio (run by editors).",
    "mcp": "Serve coding agents over the Model Context Protocol, on stdio.",
    "targets": "List target devices, and install or remove their compilers.",
}
"""The modules of the commands in the order of the help, with the first sentence of each help.

A module is imported only when its command is given: `--help` and completions must not wait for the
engine (1 s).
"""

_MODULES = {module.rpartition(".")[2]: module for module in _COMMANDS}

_COMPLAINT: Any = typer.BadParameter.__mro__[2]
"""Click's `ClickException`, of whichever click Typer brings along."""


class _Commands(TyperGroup):
    """The commands of `_COMMANDS` and of extensions, imported on use.

    They print hidden characters of arguments as escapes, also in error messages: arguments can be
    file names, by a shell's `*`.
    """

    def __init__(self, **extra: Any) -> None:
        """Create the commands as they are listed, in help and completions."""
        helps = {name: _COMMANDS[module] for name, module in _MODULES.items()}
        helps |= {name: each.help for name, each in extensions.installed().items()}
        listed = {name: TyperCommand(name, help=help) for name, help in helps.items()}
        super().__init__(**{**extra, "commands": listed})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is to be run, and its arguments."""
        if why := extensions.missing(args[0]):
            raise _COMPLAINT(why)
        name, _, rest = super().resolve_command(ctx, args)
        return name, _imported(name) if name is not None else None, rest

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Parse the arguments of all commands."""
        with _visible_complaints():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments of one command, and run it."""
        with _visible_complaints():
            return super().invoke(ctx)


def _imported(name: str) -> Any:
    """Return a command of its module: the module's `app`, or its function of the same name."""
    # A third of what a command imports is code that `dataclasses` compiles.
    from jaxsight.files.bytecode import cached_bytecode, file_for

    with cached_bytecode(file_for(f"command{name}"), dataclasses):
        if name in extensions.NAMES:
            module = extensions.part(name, "cli.command")
        else:
            module = importlib.import_module(f"jaxsight.cli.commands.{_MODULES[name]}")
    typed = typer.Typer(rich_markup_mode="rich")
    if app := getattr(module, "app", None):
        typed.add_typer(app, name=name)
    else:
        typed.command(name, cls=getattr(module, "Command", None))(getattr(module, name))
    return get_group(typed).commands[name]


@contextmanager
def _visible_complaints() -> Iterator[None]:
    try:
        yield
    except _COMPLAINT as error:
        from jaxsight.cli.output.printing import complaint

        error.message = complaint(error.message)
        raise


convert_without_pydantic()

app = typer.Typer(
    name="jaxsight",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from jaxsight.cli.output.printing import Printer

        Printer().print(f"jaxsight {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    no_server: Annotated[
        bool,
        typer.Option(
            "--no-server", help="Run the command in this process; may also follow the command."
        ),
    ] = False,
) -> None:
    """Show how JAX traces and compiles your functions: shapes, jaxprs, kernels and errors.

    Functions are traced with the example inputs in their docstrings, else as they
    are called, else with assumed inputs:

        def f(x):
            \"\"\"Return twice the sine.

            Example inputs:
                x: f32[8, 128]
            \"\"\"

    Run [bold]jaxsight COMMAND --help[/bold] for the options of a command.
    """
