"""Write the repro of a dumped program, and run it in a fresh process to see that it fails."""

from __future__ import annotations

import inspect
from pathlib import Path

import jax

from jaxsight_repro import environment
from jaxsight_repro.checks.parsing import parse
from jaxsight_repro.compat import configuration
from jaxsight_repro.dumps.choosing import ChosenDump
from jaxsight_repro.dumps.reading import arguments, read
from jaxsight_repro.emit.from_case import Emitted, checked_run
from jaxsight_repro.emit.repro_file import About, write
from jaxsight_repro.failures import RunFailure
from jaxsight_source.compat.staging import evaluate, opened
from jaxsight_source.text.names import identifier

_ASSUMED = "The dump has no arguments: those of `inputs` are assumed."


def emit(chosen: ChosenDump, out: Path, *, check: str = "", timeout: float) -> Emitted:
    """Write the repro of a dumped program to `out`, and run it.

    Args:
        check: what the program does wrong; empty for any failure.
        timeout: seconds after which it hangs.

    Raises:
        UnreadableProgram: the dump cannot be read.
        CannotEmit: the program cannot be written.
    """
    checked = parse(check)
    dumped = read(chosen.path)
    program, notes = dumped.with_library_calls(), [*dumped.notes]
    options = {"jax_enable_x64": True} if program.x64 else {}
    configuration.apply(options)
    name = identifier(program.name, "program")
    jaxpr = opened(program.jaxpr)

    def main(*flat: object) -> object:
        results = evaluate(jaxpr, *flat)
        return results[0] if len(results) == 1 else tuple(results)

    main.__name__ = name
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(each, kind) for each in program.names])
    setattr(main, "__signature__", signature)  # noqa: B010 - functions declare no such attribute
    values = arguments(program)
    if values:
        notes.append(_ASSUMED)
    if opaque := ", ".join(dict.fromkeys(call.target for call in program.opaque)):
        notes.append(f"Calls of foreign functions need these registered: {opaque}.")
    about = About(
        RunFailure("finished"),
        environment.current(options),
        checked.lines(jitted=True),
        origin=str(chosen.path.name),
        notes=notes,
    )
    repro = write(jax.jit(main), values, program.names, about)
    return checked_run(repro, out, timeout, checked)
