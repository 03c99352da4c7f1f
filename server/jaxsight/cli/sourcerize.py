"""Write a function as verified source in pure JAX: `jaxsight sourcerize FILE:FUNCTION`.

Stdout is the module, or the verdict with `--check`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.notes import print_notes
from jaxsight.cli.printing import Printer, document, print_json
from jaxsight.cli.running import running
from jaxsight.cli.sources import Address, read_source
from jaxsight.cli.viewing import viewed
from jaxsight.cli.writing import write
from jaxsight.features import caveats
from jaxsight.features.caveats import commented
from jaxsight.features.model import Shown
from jaxsight.features.sourcerized import NotSourcerized, label
from jaxsight.queries.located_answer import View
from jaxsight.text.inert import block
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import SourceOptions


class Style(StrEnum):
    """Styles of the source: `protocol.STYLES`."""

    LAX = "lax"
    PRETTY = "pretty"


class Transform(StrEnum):
    """Transformations to apply before: `protocol.TRANSFORMS`."""

    GRAD = "grad"
    VALUE_AND_GRAD = "value_and_grad"
    VMAP = "vmap"
    JVP = "jvp"
    JIT = "jit"
    INVERSE = "inverse"


class Constants(StrEnum):
    """Where to write captured arrays: `protocol.CONSTANTS`."""

    INLINE = "inline"
    NPZ = "npz"
    ARGUMENT = "argument"


class Derivatives(StrEnum):
    """Which custom derivative rules to write: `options.Derivatives`."""

    EXACT = "exact"
    FIRST = "first"
    PRIMAL = "primal"


async def sourcerize(
    address: Address,
    *,
    set_name: str | None,
    wanted: SourceOptions,
    check: bool,
    output: Path | None,
    python: str | None,
    as_json: bool,
    allow: Sequence[str] = (),
) -> int:
    """Print the source of a function, or the verdict, and return the exit status.

    Args:
        check: print the verdict instead of the source.
        output: a file for the source, instead of stdout.
        allow: hosts and interpreters that the project may use.

    Raises:
        CommandError: the function does not exist or has no example inputs, no tracer starts, or
            `output` cannot be written or is required and missing.
    """
    if wanted.constants == Constants.NPZ and output is None and not check:
        raise CommandError("--constants npz requires --output: the arrays go in a file next to it")
    source = read_source(address.path)
    path = str(address.path)
    errors = Printer(stderr=True)
    name = label(address.function, wanted.transform)
    async with running([address.path], {"python": python} if python else {}, allow) as run:
        view = await viewed(run, address, source, set_name, errors)
        if not isinstance(view.answer.reply, Traced):
            return FOUND
        print_notes(errors, path, view.caveats)
        traced_by = {"python": run.python(address.path)}
        try:
            wanted = run.session.sourcerize_options(path, wanted)
            shown = await run.get(run.session.show(path, address.function, wanted))
        except NotSourcerized as problem:
            if as_json:
                print_json(_object(view, wanted, None, str(problem)) | traced_by)
            elif check and problem.different:
                Printer().print(block(str(problem)))
            else:
                errors.labelled("error", "bold red", str(problem))
            return FOUND
    if output is not None and not check:
        await asyncio.to_thread(_write, output, commented(shown, wanted.style))
    if as_json:
        print_json(_object(view, wanted, shown, "") | traced_by)
    elif check:
        verdict = f"{name}: the source is the same program, {_proofs(shown)}"
        Printer().print(verdict + _LABELS.get(wanted.derivatives, ""))
    elif output is None:
        document(commented(shown, wanted.style).text, "python")
    return 0


_LABELS = {
    Derivatives.PRIMAL.value: " (derivatives not preserved)",
    Derivatives.FIRST.value: " (first-order derivatives only)",
}
"""Additions to the verdict where not all derivatives are preserved."""


def _write(path: Path, shown: Shown) -> None:
    if shown.companion:
        write(path.with_suffix(".npz"), shown.companion)
    write(path, shown.text.encode())


def _proofs(shown: Shown) -> str:
    """Return the number of compared equations, and the runs with equal results."""
    ran = f" (run {', '.join(shown.ran)} with equal results)" if shown.ran else ""
    return f"{_count(shown.equations)}{ran}"


def _count(equations: int) -> str:
    return f"{equations} equation{'' if equations == 1 else 's'}"


def _object(view: View, wanted: SourceOptions, shown: Shown | None, reason: str) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    made: dict[str, Any] = {
        "filename": view.answer.question.path,
        "function": view.subject.name,
        "set": view.answer.question.set.name,
        "style": wanted.style,
        "transform": wanted.transform,
        "derivatives": wanted.derivatives,
        "verified": shown is not None,
        **caveats.record(view.caveats),
    }
    if shown is None:
        return made | {"reason": reason}
    return made | {
        "equations": shown.equations,
        "ran": list(shown.ran),
        "source": shown.text,
        "links": [
            {
                "row": link.line + 1,
                "equation": link.path,
                "location": {
                    "row": link.range.start.line + 1,
                    "column": link.range.start.column + 1,
                },
                "end_location": {
                    "row": link.range.end.line + 1,
                    "column": link.range.end.column + 1,
                },
            }
            for link in shown.links
            if link.range is not None
        ],
    }
