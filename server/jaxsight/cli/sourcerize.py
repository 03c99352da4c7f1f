"""`jaxsight sourcerize FILE:FUNCTION`: a function as source in pure JAX, verified. What is printed to stdout is a module or the verdict."""

from __future__ import annotations

import asyncio
import json
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.running import running
from jaxsight.cli.sources import Address, read_source
from jaxsight.cli.viewing import viewed
from jaxsight.engine.answers import Shown
from jaxsight.engine.sourcerized import NotSourcerized, label
from jaxsight.engine.views import View
from jaxsight.tracer.protocol import Sourcerize, Traced


class Style(StrEnum):
    """How the source reads: `protocol.STYLES`."""

    LAX = "lax"
    PRETTY = "pretty"


class Transform(StrEnum):
    """What of the function to write: `protocol.TRANSFORMS`."""

    GRAD = "grad"
    VALUE_AND_GRAD = "value_and_grad"
    VMAP = "vmap"
    JVP = "jvp"
    JIT = "jit"
    INVERSE = "inverse"


class Constants(StrEnum):
    """Where arrays go that are not regular: `protocol.CONSTANTS`."""

    INLINE = "inline"
    NPZ = "npz"
    ARGUMENT = "argument"


async def sourcerize(
    address: Address,
    *,
    set_name: str | None,
    wanted: Sourcerize,
    check: bool,
    output: Path | None,
    python: str | None,
    as_json: bool,
) -> int:
    """Print the source of a function, or whether there is one; the exit status.

    Args:
        check: print the verdict instead of the source.
        output: a file for the source, instead of stdout.

    Raises:
        CommandError: there is no such function, it has no example inputs, no tracer can be had, `output` cannot be written, or is missing
            where arrays are to go beside it.
    """
    if wanted.constants == Constants.NPZ and output is None and not check:
        raise CommandError("--constants npz needs --output: the arrays go into a file beside that")
    source = read_source(address.path)
    path = str(address.path)
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    name = label(address.function, wanted.transform)
    async with running([], {"python": python} if python else {}) as run:
        view = await viewed(run, address, source, set_name, errors)
        if not isinstance(view.answer.reply, Traced):
            return FOUND
        try:
            shown = await run.get(run.session.show(path, address.function, wanted))
        except NotSourcerized as problem:
            if as_json:
                print(json.dumps(_object(view, wanted, None, str(problem)), indent=2))
            elif check and problem.different:
                print(problem)
            else:
                errors.print(Text.assemble(("error: ", "bold red"), str(problem)))
            return FOUND
    if output is not None and not check:
        try:
            await asyncio.to_thread(_write, output, shown)
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror}") from error
    if as_json:
        print(json.dumps(_object(view, wanted, shown, ""), indent=2))
    elif check:
        print(f"{name}: the source is the same program, {_count(shown.equations)}")
    elif output is None:
        _print_source(shown.text)
    return 0


def _write(path: Path, shown: Shown) -> None:
    if shown.companion:
        path.with_suffix(".npz").write_bytes(shown.companion)
    path.write_text(shown.text, encoding="utf-8")


def _count(equations: int) -> str:
    return f"{equations} equation{'' if equations == 1 else 's'}"


def _print_source(text: str) -> None:
    """In colours on a terminal, as it is elsewhere."""
    console = Console(highlight=False, soft_wrap=True)
    if console.is_terminal:
        console.print(Syntax(text, "python", theme="ansi_dark", background_color="default"))
    else:
        print(text, end="")


def _object(view: View, wanted: Sourcerize, shown: Shown | None, reason: str) -> dict[str, Any]:
    """What `--json` prints."""
    made: dict[str, Any] = {
        "filename": view.answer.question.path,
        "function": view.subject.name,
        "set": view.answer.question.set.name,
        "style": wanted.style,
        "transform": wanted.transform,
        "verified": shown is not None,
    }
    if shown is None:
        return made | {"reason": reason}
    return made | {
        "equations": shown.equations,
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
