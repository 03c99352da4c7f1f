"""The commands and their options: parsed here, done in the modules beside."""

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

from jaxsight import __version__, reading
from jaxsight.cli import explain, targets
from jaxsight.cli.check import Format, check
from jaxsight.cli.errors import UNUSABLE, CommandError
from jaxsight.cli.kernels import kernels
from jaxsight.cli.printing import Printer, complaint, tolerate
from jaxsight.cli.show import What, show
from jaxsight.cli.sourcerize import Constants, Derivatives, Style, Transform, sourcerize
from jaxsight.cli.sources import Address, parse_address
from jaxsight.cli.trust import trust
from jaxsight.engine.inert import Formatter
from jaxsight.engine.settings.kinds import CODE_LIST
from jaxsight.tracer.protocol import Sourcerize

_COMPLAINT: Any = typer.BadParameter.__mro__[2]
"""Click's `ClickException`, of whichever click Typer brings along."""


class _Group(TyperGroup):
    """Commands whose complaints about arguments are inert: a shell's `*` makes arguments of file names."""

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Read the arguments of all commands."""
        with _visible_complaints():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Read the arguments of one command, and run it."""
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
        help="The interpreter with your JAX; found as in the editor when not given.",
    ),
]

Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ssh://HOST|PYTHON",
        help="Let the project's own settings and docstrings reach this machine, or an interpreter outside of the project; repeatable.",
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
    """See what JAX makes of your functions: jaxprs, shapes, errors where they happen.

    A function is traced with the example inputs that its docstring declares:

        def f(x):
            \"\"\"Twice the sine.

            Example inputs:
                x: f32[8, 128]
            \"\"\"
    """


@app.command("show")
def show_command(
    function: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION", help="Methods are written [cyan]Class.method[/cyan]."
        ),
    ],
    set_name: Annotated[
        str | None,
        typer.Option(
            "--set", metavar="NAME", help="Which example inputs, when there are several sets."
        ),
    ] = None,
    what: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="[cyan]hover[/cyan]: signature and jaxpr, as in the editor; [cyan]jaxpr[/cyan]: all of it; "
            "[cyan]shapes[/cyan]: the source with the shapes of what it assigns; or the name of an interpreter that "
            "a package registers in your environment.",
        ),
    ] = What.HOVER,
    python: Python = None,
    allow: Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the jaxpr and the shapes of a function.

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
            metavar="FILE:FUNCTION", help="Methods are written [cyan]Class.method[/cyan]."
        ),
    ],
    set_name: Annotated[
        str | None,
        typer.Option(
            "--set", metavar="NAME", help="Which example inputs, when there are several sets."
        ),
    ] = None,
    style: Annotated[
        Style,
        typer.Option(
            help="[cyan]lax[/cyan]: each operation by its own name; [cyan]pretty[/cyan]: operators, indexing, "
            "[cyan]jax.numpy[/cyan], where that is the same program."
        ),
    ] = Style.LAX,
    transform: Annotated[
        Transform | None, typer.Option(help="Write a transformation of the function instead.")
    ] = None,
    constants: Annotated[
        Constants | None,
        typer.Option(
            help="Where arrays go: [cyan]inline[/cyan]: into the text, up to a mebibyte; [cyan]npz[/cyan]: into a file beside "
            "the output; [cyan]argument[/cyan]: into arguments. When not given: into the text if they fit there, else into arguments."
        ),
    ] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="A comment with the type on each line.")
    ] = False,
    sources: Annotated[
        bool,
        typer.Option("--sources", help="Your source as a comment wherever it changes."),
    ] = False,
    inline: Annotated[
        bool, typer.Option("--inline", help="Write jitted functions out where they are called.")
    ] = False,
    scopes: Annotated[
        bool,
        typer.Option("--scopes", help="Named scopes around what was computed under them."),
    ] = False,
    derivatives: Annotated[
        Derivatives | None,
        typer.Option(
            help="Rules of custom derivatives to write: [cyan]exact[/cyan]: of three orders; [cyan]first[/cyan]: of one; "
            "[cyan]primal[/cyan]: none, so that derivatives are not kept. [default: the setting]"
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Print only whether the source is the same program, or where it parts."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the source into a file."),
    ] = None,
    python: Python = None,
    allow: Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a function as source in pure JAX: no classes, no libraries, and exactly the same program.

    The source is traced again before it is shown. Exits with 1 when there is none that is the same program.

    [bold]Examples[/bold]

        jaxsight sourcerize model.py:loss --style pretty
        jaxsight sourcerize model.py:loss --transform grad --output loss_grad.py
        jaxsight sourcerize model.py:Attention.__call__ --check
    """
    wanted = Sourcerize(
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
    wanted: Sourcerize,
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
            metavar="FILE:FUNCTION", help="Methods are written [cyan]Class.method[/cyan]."
        ),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            help="The device, as `jaxsight targets` lists them; repeat for more. The project's when not given.",
        ),
    ] = None,
    set_name: Annotated[
        str | None,
        typer.Option(
            "--set", metavar="NAME", help="Which example inputs, when there are several sets."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="FILE:FUNCTION|REVISION",
            help="Compare with another function, or with this one in a git revision.",
        ),
    ] = None,
    python: Python = None,
    allow: Allow = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_dot: Annotated[
        bool, typer.Option("--dot", help="Print the graph in Graphviz's language.")
    ] = False,
    as_svg: Annotated[
        bool, typer.Option("--svg", help="Draw the graph, by Graphviz, as SVG.")
    ] = False,
    as_hlo: Annotated[bool, typer.Option("--hlo", help="Print the optimized HLO.")] = False,
) -> None:
    """Show the kernels of a function on a device, which need not be here.

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
    """Another function, or else a git revision."""
    if text is None:
        return None
    return parse_address(text) if ":" in text or reading.is_file(text) else text


targets_app = typer.Typer(help="List what can be compiled for, and get what is missing.")
app.add_typer(targets_app, name="targets", invoke_without_command=True)


@targets_app.callback()
def targets_command(
    context: typer.Context,
    python: Python = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the targets: ready, what they need and how many MB that is, or why they cannot be had here."""
    if context.invoked_subcommand is None:
        _run(_done(lambda: targets.listed(python, as_json=as_json)))


@targets_app.command("install")
def targets_install_command(
    platform: Annotated[str, typer.Argument(metavar="cuda|tpu")], python: Python = None
) -> None:
    """Install a compiler for GPUs or TPUs that are not here, apart from your own environment."""
    _run(_done(lambda: targets.install(platform, python)))


@targets_app.command("remove")
def targets_remove_command(
    platform: Annotated[str, typer.Argument(metavar="cuda|tpu")],
) -> None:
    """Delete what was installed."""
    _run(_done(lambda: targets.remove(platform)))


async def _done(work: Callable[[], int]) -> int:
    """Plain work as a command, so that its errors are told as those of all commands are."""
    return work()


@app.command("check")
def check_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...", help="Files and folders; this folder when none is given."
        ),
    ] = None,
    output: Annotated[
        Format, typer.Option("--output-format", help="How findings are written.")
    ] = Format.TEXT,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE", help="Report only these codes or beginnings (JX4); repeat for more."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Leave these codes or beginnings out; repeat for more."),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Apply the fixes that are proved to help: same values, and better figures.",
        ),
    ] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option(
            "--unsafe-fixes",
            help="Apply those too that change signatures, or values that were wrong.",
        ),
    ] = False,
    calls: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEST",
            help="Run these tests with pytest too, and report calls that have functions compiled again.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Leave out the findings that this file has."),
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all findings to this file, for --baseline."),
    ] = None,
    verify_import: Annotated[
        bool,
        typer.Option(
            "--verify-import",
            help="Also import each file whole and report functions that differ from it.",
        ),
    ] = False,
    verify_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Time limit for each import. The setting [cyan]timeouts.execute[/cyan] if not given.",
        ),
    ] = None,
    python: Python = None,
    allow: Allow = None,
) -> None:
    """Trace every function that has example inputs and report what goes wrong.

    Exits with 0 when there is nothing to report, 1 when there is, 2 when the check could not be done.

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
        typer.Argument(metavar="[CODE]", help="Such as JX102; all codes when none is given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what a code means, with an example, its fix, and when to ignore it."""
    _run(_done(lambda: explain.explain(code, as_json=as_json)))


@app.command("trust")
def trust_command(
    path: Annotated[
        Path | None, typer.Argument(metavar="[PATH]", help="A folder; this one by default.")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List what was decided instead.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Take the decision back.")] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ssh://HOST|PYTHON",
            help="Let the folder's settings and docstrings reach this machine, or an interpreter outside of it; repeatable. "
            "The trust in the folder's code stays as it is.",
        ),
    ] = None,
) -> None:
    """Trust a folder: editors may run its code and its interpreters, and what is below it.

    Decisions are kept in your state folder (~/.local/state/jaxsight/trust.json).

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
            metavar="HOST:PORT", help="Listen there for one client instead of stdin and stdout."
        ),
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(
            metavar="ask|always|never|editor",
            help="Whether to run code of folders that you have not decided about; "
            "[cyan]editor[/cyan]: the client says. The user's own setting by default.",
        ),
    ] = None,
) -> None:
    """Start the language server on stdin and stdout; your editor runs this."""
    from jaxsight.lsp.server import main as serve

    sys.exit(serve([*(["--tcp", tcp] if tcp else []), *(["--trust", trust] if trust else [])]))


def _codes(option: str, given: list[str] | None) -> list[str]:
    """The codes of an option; several may be parted by commas."""
    codes = [code for one in given or [] for code in one.split(",") if code]

    def complain(_: object, message: str, help: str) -> None:
        raise typer.BadParameter("; ".join(filter(None, (message, help))), param_hint=option)

    CODE_LIST.read(codes, complain)
    return codes


def _run(command: Coroutine[Any, Any, int]) -> None:
    # What the engine warns of in its log (a tracer that died) the user is told as a finding.
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
