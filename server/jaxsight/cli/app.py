"""The Typer application: its commands, and the help and the errors that it prints itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jaxsight import __version__
from jaxsight.cli.commands import (
    check,
    dataset,
    explain,
    kernels,
    record,
    reduce,
    repro,
    server,
    show,
    sourcerize,
    targets,
    trust,
)
from jaxsight.cli.output.printing import Printer, complaint

_COMPLAINT: Any = typer.BadParameter.__mro__[2]
"""Click's `ClickException`, of whichever click Typer brings along."""


class _Group(TyperGroup):
    """Commands that print hidden characters of arguments as escapes, also in error messages.

    Arguments can be file names, by a shell's `*`.
    """

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Parse the arguments of all commands."""
        with _visible_complaints():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments of one command, and run it."""
        with _visible_complaints():
            return super().invoke(ctx)


@contextmanager
def _visible_complaints() -> Iterator[None]:
    try:
        yield
    except _COMPLAINT as error:
        error.message = complaint(error.message)
        raise


app = typer.Typer(
    name="jaxsight",
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
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
) -> None:
    """Show how JAX traces and compiles your functions: shapes, jaxprs, kernels and errors.

    Functions are traced with the example inputs in their docstrings:

        def f(x):
            \"\"\"Return twice the sine.

            Example inputs:
                x: f32[8, 128]
            \"\"\"

    Run [bold]jaxsight COMMAND --help[/bold] for the options of a command.
    """


app.command("show")(show.show)
app.command("sourcerize")(sourcerize.sourcerize)
app.command("kernels")(kernels.kernels)
app.add_typer(targets.app, name="targets", invoke_without_command=True)
app.command("record", cls=record.Command)(record.record)
app.command("check")(check.check)
app.add_typer(repro.app, name="repro")
app.command("reduce")(reduce.reduce)
app.add_typer(dataset.app, name="dataset")
app.command("explain")(explain.explain)
app.command("trust")(trust.trust)
app.command("server")(server.serve)
