"""Parse the commands and their options; the modules beside this one run them."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from jaxsight import __version__
from jaxsight.cli import explain, targets
from jaxsight.cli.check import Format, check
from jaxsight.cli.errors import UNUSABLE, CommandError
from jaxsight.cli.kernels import kernels
from jaxsight.cli.printing import Printer, complaint, tolerate
from jaxsight.cli.show import What, show
from jaxsight.cli.sourcerize import Constants, Derivatives, Style, Transform, sourcerize
from jaxsight.cli.sources import Address, parse_address
from jaxsight.cli.trust import trust
from jaxsight.files import reading
from jaxsight.settings.kinds import CODE_LIST
from jaxsight.text.inert import Formatter
from jaxsight.wire.messages.requests import SourceOptions

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

INTERRUPTED = 130

Python = Annotated[
    str | None,
    typer.Option(
        metavar="PYTHON",
        help="Python interpreter with JAX installed.",
        show_default="auto-detected",
    ),
]

Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ssh://HOST|PYTHON",
        help="Allow the project's settings and docstrings to use this host, or this interpreter "
        "outside of the project. Repeatable.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        Printer().print(f"jaxsight {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
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


@app.command("show")
def show_command(
    function: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION", help="Function, or method as [cyan]Class.method[/cyan]."
        ),
    ],
    set_name: Annotated[
        str | None,
        typer.Option("--set", metavar="NAME", help="Example set to use.", show_default="the first"),
    ] = None,
    what: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="View to print. [cyan]hover[/cyan]: signature and jaxpr, as in the editor; "
            "[cyan]jaxpr[/cyan]: the whole jaxpr; [cyan]shapes[/cyan]: the source with the "
            "shapes of "
            "assigned values; or the name of a jaxpr interpreter that an installed package "
            "registers.",
        ),
    ] = What.HOVER,
    python: Python = None,
    allow: Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the jaxpr and the shapes of a function.

    The function is traced with the example inputs in its docstring.

    [bold]Examples[/bold]

        jaxsight show model.py:loss
        jaxsight show model.py:Attention.__call__ --what shapes
        jaxsight show model.py:attention --set decode --what jaxpr
    """
    _run(_show(function, set_name, what, python, as_json, allow or ()))


async def _show(
    function: str,
    set_name: str | None,
    what: str,
    python: str | None,
    as_json: bool,
    allow: Sequence[str],
) -> int:
    return await show(
        parse_address(function),
        set_name=set_name,
        what=what,
        python=python,
        as_json=as_json,
        allow=allow,
    )


@app.command("sourcerize")
def sourcerize_command(
    function: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION", help="Function, or method as [cyan]Class.method[/cyan]."
        ),
    ],
    set_name: Annotated[
        str | None,
        typer.Option("--set", metavar="NAME", help="Example set to use.", show_default="the first"),
    ] = None,
    style: Annotated[
        Style,
        typer.Option(
            help="Style of the source. [cyan]lax[/cyan]: one [cyan]jax.lax[/cyan] call for each "
            "operation; [cyan]pretty[/cyan]: operators, indexing and [cyan]jax.numpy[/cyan] "
            "where they "
            "give the same program."
        ),
    ] = Style.LAX,
    transform: Annotated[
        Transform | None, typer.Option(help="Transformation to apply before writing the source.")
    ] = None,
    constants: Annotated[
        Constants | None,
        typer.Option(
            help="Where to write captured arrays. [cyan]inline[/cyan]: in the source, up to 1 MiB; "
            "[cyan]npz[/cyan]: in a file next to the output; [cyan]argument[/cyan]: as arguments.",
            show_default="inline if they fit, else argument",
        ),
    ] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Add a comment with the type to each line.")
    ] = False,
    sources: Annotated[
        bool,
        typer.Option("--sources", help="Add your source lines as comments."),
    ] = False,
    inline: Annotated[
        bool, typer.Option("--inline", help="Inline jitted functions at their call sites.")
    ] = False,
    scopes: Annotated[
        bool,
        typer.Option("--scopes", help="Preserve [cyan]jax.named_scope[/cyan] annotations."),
    ] = False,
    derivatives: Annotated[
        Derivatives | None,
        typer.Option(
            help="Custom derivative rules to write. [cyan]exact[/cyan]: up to the third order; "
            "[cyan]first[/cyan]: first order only; [cyan]primal[/cyan]: none, which does not "
            "preserve "
            "derivatives.",
            show_default="the setting sourcerize.derivatives",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Only verify equivalence; print the first difference, if any."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the source to a file."),
    ] = None,
    python: Python = None,
    allow: Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a function as equivalent source in pure JAX, without classes and libraries.

    The source is traced and compared with the function before it is printed.
    Exits with 1 if no equivalent source can be written.

    [bold]Examples[/bold]

        jaxsight sourcerize model.py:loss --style pretty
        jaxsight sourcerize model.py:loss --transform grad --output loss_grad.py
        jaxsight sourcerize model.py:Attention.__call__ --check
    """
    wanted = SourceOptions(
        style.value,
        transform.value if transform is not None else "",
        constants=constants.value if constants is not None else "",
        shapes=shapes,
        sources=sources,
        inline=inline,
        scopes=scopes,
        derivatives=derivatives.value if derivatives is not None else "",
    )
    _run(_sourcerize(function, set_name, wanted, check, output, python, as_json, allow or ()))


async def _sourcerize(
    function: str,
    set_name: str | None,
    wanted: SourceOptions,
    check: bool,
    output: Path | None,
    python: str | None,
    as_json: bool,
    allow: Sequence[str],
) -> int:
    return await sourcerize(
        parse_address(function),
        set_name=set_name,
        wanted=wanted,
        check=check,
        output=output,
        python=python,
        as_json=as_json,
        allow=allow,
    )


@app.command("kernels")
def kernels_command(
    function: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION", help="Function, or method as [cyan]Class.method[/cyan]."
        ),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            help="Target device, as listed by [cyan]jaxsight targets[/cyan]. Repeatable.",
            show_default="the project's",
        ),
    ] = None,
    set_name: Annotated[
        str | None,
        typer.Option("--set", metavar="NAME", help="Example set to use.", show_default="the first"),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:FUNCTION|REVISION",
            help="Compare with another function, or with the same function in a git revision.",
        ),
    ] = None,
    python: Python = None,
    allow: Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_dot: Annotated[
        bool, typer.Option("--dot", help="Print the kernel graph in Graphviz DOT format.")
    ] = False,
    as_svg: Annotated[
        bool, typer.Option("--svg", help="Print the kernel graph as SVG (requires Graphviz).")
    ] = False,
    as_hlo: Annotated[bool, typer.Option("--hlo", help="Print the optimized HLO.")] = False,
) -> None:
    """Show the kernels XLA generates for a function; the target device need not be present.

    The function is traced with its example inputs and compiled, but not run.

    [bold]Examples[/bold]

        jaxsight kernels model.py:loss --target cuda:h100
        jaxsight kernels model.py:fast --against model.py:slow
        jaxsight kernels model.py:loss --against HEAD
        jaxsight kernels model.py:loss --svg > loss.svg
    """
    wanted = {"json": as_json, "dot": as_dot, "svg": as_svg, "hlo": as_hlo}
    form = next((name for name, given in wanted.items() if given), "table")
    _run(_kernels(function, target or [], set_name, against, form, python, allow or ()))


async def _kernels(
    function: str,
    targets: list[str],
    set_name: str | None,
    against: str | None,
    form: str,
    python: str | None,
    allow: Sequence[str],
) -> int:
    return await kernels(
        parse_address(function),
        targets=targets,
        set_name=set_name,
        against=_against(against),
        form=form,
        python=python,
        allow=allow,
    )


def _against(text: str | None) -> Address | str | None:
    """Return another function, or a git revision."""
    if text is None:
        return None
    return parse_address(text) if ":" in text or reading.is_file(text) else text


targets_app = typer.Typer(
    help="""List target devices, and install or remove their compilers.

    Without a command, list the target devices: ready, installable (with the
    download size), or unavailable.
    """
)
app.add_typer(targets_app, name="targets", invoke_without_command=True)


@targets_app.callback()
def targets_command(
    context: typer.Context,
    python: Python = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List target devices, unless a command is given."""
    if context.invoked_subcommand is None:
        _run(_done(lambda: targets.listed(python, as_json=as_json)))


@targets_app.command("install")
def targets_install_command(
    platform: Annotated[str, typer.Argument(metavar="cuda|tpu")], python: Python = None
) -> None:
    """Install a compiler for GPUs or TPUs that are not present, separate from your environment."""
    _run(_done(lambda: targets.install(platform, python)))


@targets_app.command("remove")
def targets_remove_command(
    platform: Annotated[str, typer.Argument(metavar="cuda|tpu")],
) -> None:
    """Remove an installed compiler."""
    _run(_done(lambda: targets.remove(platform)))


async def _done(work: Callable[[], int]) -> int:
    """Run a synchronous command, so that its errors are printed like those of all commands."""
    return work()


@app.command("check")
def check_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Files or folders to check.", show_default="."),
    ] = None,
    output: Annotated[
        Format, typer.Option("--output-format", help="Output format for findings.")
    ] = Format.TEXT,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE", help="Rules or rule prefixes to enable (e.g. JX4). Repeatable."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Rules or rule prefixes to disable. Repeatable."),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Apply verified safe fixes.",
        ),
    ] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option(
            "--unsafe-fixes",
            help="Also apply fixes that may change signatures or values.",
        ),
    ] = False,
    calls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEST",
            help="Also run these pytest targets and report recompilations.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ignore findings listed in this baseline file."),
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all findings to a baseline file."),
    ] = None,
    verify_import: Annotated[
        bool,
        typer.Option(
            "--verify-import",
            help="Also import each file and report functions whose programs differ.",
        ),
    ] = False,
    verify_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Time limit for each import.",
            show_default="the setting timeouts.execute",
        ),
    ] = None,
    python: Python = None,
    allow: Allow = None,
) -> None:
    """Check all functions with example inputs and report errors and performance problems.

    Exits with 0 if there are no findings, with 1 if there are errors or
    warnings, and with 2 if the check fails.

    [bold]Examples[/bold]

        jaxsight check
        jaxsight check src tests/test_model.py --ignore JX404
        jaxsight check src --fix
        jaxsight check --calls tests
        jaxsight check --verify-import
        jaxsight check --output-format github
    """
    _run(
        check(
            paths or [Path()],
            output=output,
            select=_codes("--select", select),
            ignore=_codes("--ignore", ignore),
            python=python,
            fixing=fix or unsafe_fixes,
            unsafe=unsafe_fixes,
            calls=calls or (),
            baseline=baseline,
            new_baseline=write_baseline,
            verifying=verify_import,
            verify_timeout=verify_timeout,
            allow=allow or (),
        )
    )


@app.command("explain")
def explain_command(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="RULE",
            help="Rule to explain, by code (JX102) or name.",
            show_default="list all",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a rule, or list all rules."""
    _run(_done(lambda: explain.explain(code, as_json=as_json)))


@app.command("trust")
def trust_command(
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="Folder to trust.", show_default=".")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List all decisions.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Revoke the decision.")] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ssh://HOST|PYTHON",
            help="Allow the folder's settings and docstrings to use this host, or this interpreter "
            "outside of the folder, without changing the trust in its code. Repeatable.",
        ),
    ] = None,
) -> None:
    """Trust a folder: allow editors to run its code and interpreters, subfolders included.

    Decisions are stored in your state folder (~/.local/state/jaxsight/trust.json).

    [bold]Examples[/bold]

        jaxsight trust
        jaxsight trust ~/work --forget
        jaxsight trust --allow ssh://cluster
        jaxsight trust --list
    """
    _run(_done(lambda: trust(path or Path(), listing=listing, forget=forget, allow=allow or ())))


@app.command("server")
def server_command(
    tcp: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Listen for one client on a TCP port instead of stdio."
        ),
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(
            metavar="ask|always|never|editor",
            help="Whether to run code in folders without a decision; [cyan]editor[/cyan]: the "
            "client "
            "decides.",
            show_default="the user's setting",
        ),
    ] = None,
) -> None:
    """Start the language server on stdio (run by editors)."""
    from jaxsight.lsp.server import main as serve

    sys.exit(serve([*(["--tcp", tcp] if tcp else []), *(["--trust", trust] if trust else [])]))


def _codes(option: str, given: list[str] | None) -> list[str]:
    """Return the rules of an option, which may be separated by commas."""
    codes = [code for one in given or [] for code in one.split(",") if code]

    def complain(_: object, message: str, help: str) -> None:
        raise typer.BadParameter("; ".join(filter(None, (message, help))), param_hint=option)

    CODE_LIST.read(codes, complain)
    return codes


def _run(command: Coroutine[Any, Any, int]) -> None:
    # The engine's warnings (such as a tracer that died) are reported as findings, not in the log.
    log = logging.StreamHandler()
    log.setFormatter(Formatter("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[log])
    tolerate()
    try:
        status = asyncio.run(command)
    except CommandError as error:
        Printer(stderr=True).labelled("error", "bold red", str(error))
        status = UNUSABLE
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)
