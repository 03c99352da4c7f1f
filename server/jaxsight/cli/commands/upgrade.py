"""Compare all functions of a project under two versions of JAX: `jaxsight upgrade PATH…`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from jaxsight.cli.command_run import start_run
from jaxsight.cli.errors import FOUND, NOTHING_EXAMINED, CommandError
from jaxsight.cli.execution import command
from jaxsight.cli.options import Allow, AsJson, InputsChoice, Target, WhichInputs
from jaxsight.cli.output.printing import Printer, print_json
from jaxsight.cli.sources.texts import SourceFile, texts
from jaxsight.cli.trusted_paths import hosts
from jaxsight.cli.upgrading.differences import compared
from jaxsight.cli.upgrading.examining import ExaminedProject, examine
from jaxsight.cli.upgrading.report import print_report, record
from jaxsight.cli.user_python import interpreter_with_jax, user_interpreter
from jaxsight.text.inert import one_line

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Files or folders to compare.", show_default="."),
]

OtherPython = Annotated[
    str | None,
    typer.Option("--python", metavar="OTHER", help="Interpreter of the environment to upgrade to."),
]

OtherJax = Annotated[
    str | None,
    typer.Option(
        "--jax",
        metavar="VERSION",
        help="Version of JAX to upgrade to. It is installed apart from your environment, "
        "with your other packages.",
    ),
]

FromPython = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PYTHON",
        help="Interpreter of the environment to upgrade from.",
        show_default="auto-detected",
    ),
]

InputsTime = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Time limit for finding inputs that nobody wrote, in each file.",
    ),
]

Offline = Annotated[
    bool, typer.Option("--offline", help="Use installed versions of JAX only, with --jax.")
]

Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="List functions without differences, too.")
]


@command
async def upgrade(
    paths: Paths = None,
    python: OtherPython = None,
    jax: OtherJax = None,
    from_python: FromPython = None,
    target: Target = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
    inputs_time: InputsTime = 20.0,
    offline: Offline = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> int:
    """Show what another version of JAX changes in the functions of a project.

    Each function is traced, compiled and, if that is safe, run on the CPU with random inputs,
    under both versions. Errors, types, numbers, kernels, memory, trace and compile times are
    compared, and new deprecation warnings are listed.

    Exits with 0 if nothing is worse, with 1 if something is, with 2 if the comparison fails, and
    with 3 if there are no functions to compare.

    [bold]Examples[/bold]

        jaxsight upgrade --jax 0.12.0
        jaxsight upgrade src --python ../next/.venv/bin/python
        jaxsight upgrade model.py --jax 0.12.0 --target cuda:h100 --json
    """
    if (python is None) == (jax is None):
        raise CommandError("give one of --python and --jax; for example --jax 0.12.0")
    paths = paths or [Path()]
    files = list(texts(paths, None))
    if jax is not None:
        own = user_interpreter(from_python, paths[0])
        with Printer(stderr=True).status(f"installing JAX {one_line(jax)}"):
            python = await asyncio.to_thread(interpreter_with_jax, own, jax, offline)
    limits = (which, inputs_time, [*(allow or ()), *hosts([target] if target else ())])
    before = await _examined(paths, files, from_python, target or "", *limits)
    names: dict[str, list[str]] = {}
    for path, name in before.functions:
        names.setdefault(path, []).append(name)
    after = await _examined(paths, files, python, before.target, *limits, names)
    functions = compared(before, after)
    if as_json:
        print_json(record(before, after, functions))
    elif functions:
        print_report(Printer(), before, after, functions, verbose=verbose)
    else:
        Printer(stderr=True).print("no functions with inputs to compare")
    if not functions:
        return NOTHING_EXAMINED
    return FOUND if any(each.is_worse for each in functions) else 0


async def _examined(
    paths: Sequence[Path],
    files: Sequence[SourceFile],
    python: str | None,
    target: str,
    which: InputsChoice,
    inputs_time: float,
    allow: Sequence[str],
    names: Mapping[str, Sequence[str]] | None = None,
) -> ExaminedProject:
    """Return what the functions are with one interpreter."""
    async with start_run(paths, python, allow, which) as run:
        return await examine(run, files, target, inputs_time, names)
