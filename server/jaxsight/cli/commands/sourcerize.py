"""Write a function as verified source in pure JAX: `jaxsight sourcerize FILE:FUNCTION`.

Stdout is the module, or the verdict with `--check`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND, CommandError
from jaxsight.cli.execution import command
from jaxsight.cli.options import Allow, AsJson, InputsChoice, Python, SetName, WhichInputs
from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.output.notes import print_inputs, print_notes
from jaxsight.cli.output.printing import Printer, print_document, print_json
from jaxsight.cli.program_files.content import is_program_file
from jaxsight.cli.program_files.written import ProgramFile, write_ir
from jaxsight.cli.sources.arguments import Address, parse_address, read_source
from jaxsight.cli.traced_view import trace_view
from jaxsight.cli.user_python import user_interpreter
from jaxsight.features import caveats, inputs
from jaxsight.features.caveats import commented
from jaxsight.features.model import VirtualText
from jaxsight.features.virtual_documents.show import with_settings
from jaxsight.features.virtual_documents.sourcerized import NotSourcerized, label
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.inert import block
from jaxsight.text.units import count
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import Transform, TransformedSource
from jaxsight_source.options import Constants, Derivatives, ProgramLanguage, Style

READ_WITHIN = 300.0
"""Seconds, a choice: ten times what the largest program of a model takes. A small file may take
forever."""


@command
async def sourcerize(
    function: str,
    *,
    set_name: SetName = None,
    to: ProgramLanguage = "python",
    style: Style = "lax",
    transform: Transform | None = None,
    constants: Constants | None = None,
    shapes: bool = False,
    sources: bool = False,
    inline: bool = False,
    scopes: bool = False,
    derivatives: Derivatives | None = None,
    check: bool = False,
    output: Path | None = None,
    python: Python = None,
    allow: Allow = None,
    which: WhichInputs = InputsChoice.ALL,
    limit: float = READ_WITHIN,
    as_json: AsJson = False,
) -> int:
    """Write a function as equivalent source in pure JAX, without classes and libraries.

    It is compared with the function first. Exits with 1 if no equivalent source can be written.

    [bold]Examples[/bold]

        jaxsight sourcerize model.py:loss --transform grad --output loss_grad.py
        jaxsight sourcerize program.mlir --style pretty
        jaxsight sourcerize model.py:loss --to stablehlo

    Args:
        function (FILE:FUNCTION | PROGRAM): Function, or method as [cyan]Class.method[/cyan]; or a
            file of StableHLO, HLO or a serialized [cyan]jax.export.Exported[/cyan], [cyan]-[/cyan]
            for stdin.
        to: What to write. [cyan]python[/cyan]: JAX; [cyan]jaxpr[/cyan], [cyan]stablehlo[/cyan],
            [cyan]hlo[/cyan] (before optimizations): the program, with your lines as comments;
            [cyan]graph[/cyan]: the jaxpr for Graphviz.
        style: Style of the source. [cyan]lax[/cyan]: one [cyan]jax.lax[/cyan] call for each
            operation; [cyan]pretty[/cyan]: operators, indexing and [cyan]jax.numpy[/cyan] where
            they give the same program.
        transform: Transformation to apply before writing the source.
        constants: Where to write captured arrays. [cyan]inline[/cyan]: in the source, up to 1 MiB;
            [cyan]npz[/cyan]: in a file next to the output; [cyan]argument[/cyan]: as arguments.
            [default: inline if they fit, else argument]
        shapes: Add a comment with the type to each line.
        sources: Add your source lines as comments.
        inline: Inline jitted functions at their call sites.
        scopes: Preserve [cyan]jax.named_scope[/cyan] annotations.
        derivatives: Custom derivative rules to write. [cyan]exact[/cyan]: up to the third order;
            [cyan]first[/cyan]: first order only; [cyan]primal[/cyan]: none, which does not preserve
            derivatives. [default: the setting sourcerize.derivatives]
        check: Only verify equivalence; print the first difference, if any.
        output (--output -o FILE): Write the source to a file.
        limit (--timeout SECONDS): Time to read a program file in.
    """
    options = TransformedSource(
        style,
        transform=transform or "",
        constants=constants,
        shapes=shapes,
        sources=sources,
        inline=inline,
        scopes=scopes,
        derivatives=derivatives,
    )
    if is_program_file(function):
        file = ProgramFile(function, to, options, user_interpreter(python), limit)
        return await file.write(output, is_check=check, as_json=as_json)
    address = parse_address(function)
    if constants == "npz" and output is None and not check:
        raise CommandError("--constants npz requires --output: the arrays go in a file next to it")
    async with start_run([address.path], python, allow, which) as run:
        if to != "python":
            return await write_ir(run, address, set_name, to, output, as_json=as_json)
        written = await _write_source(run, address, set_name, options, as_json, check)
    if written is None:
        return FOUND
    text = commented(written.shown, written.options.style)
    if output is not None and not check:
        await asyncio.to_thread(_write_files, output, text)
    if as_json:
        print_json(_success_record(written))
    elif check or output is None:
        _print(written, address.function if check else None, text)
    return 0


@dataclass(frozen=True, slots=True)
class _Written:
    """A function's source, with the view that it was written from and the options that apply."""

    view: View
    options: TransformedSource
    shown: VirtualText
    python: dict[str, str] | None


async def _write_source(
    run: CommandRun,
    address: Address,
    set_name: str | None,
    options: TransformedSource,
    as_json: bool,
    is_check: bool,
) -> _Written | None:
    """Return the source of a function, or `None` if the reason why there is none was printed.

    Raises:
        CommandError: the function does not exist or has no example inputs, or no tracer starts.
    """
    path = str(address.path)
    errors = Printer(stderr=True)
    view = await trace_view(run, address, read_source(address.path), set_name, errors)
    if not isinstance(view.answer.reply, Traced):
        return None
    print_inputs(errors, view)
    print_notes(errors, path, view.caveats)
    python = run.python(address.path)
    try:
        options = with_settings(run.session.engine, path, options)
        shown = await run.get(run.session.show(path, address.function, options))
    except NotSourcerized as problem:
        if as_json:
            record = {**_record(view, options, verified=False), "reason": str(problem)}
            print_json(record | {"python": python})
        elif is_check and problem.different:
            Printer().print(block(str(problem)))
        else:
            errors.labelled("error", "bold red", str(problem))
        return None
    return _Written(view, options, shown, python)


_LABELS = {
    "primal": " (derivatives not preserved)",
    "first": " (first-order derivatives only)",
}
"""Additions to the verdict where not all derivatives are preserved."""


def _print(written: _Written, checked: str | None, text: VirtualText) -> None:
    """Print the source, or only the verdict about a function that was `checked`."""
    if checked is None:
        print_document(text.text, "python")
        return
    name = label(checked, written.options.transform)
    added = _LABELS.get(written.options.derivatives or "", "")
    Printer().print(f"{name}: the source is the same program, {_proofs(written.shown)}{added}")


def _write_files(path: Path, shown: VirtualText) -> None:
    if shown.companion:
        write_file(path.with_suffix(".npz"), shown.companion)
    write_file(path, shown.text.encode())


def _proofs(shown: VirtualText) -> str:
    """Return the number of compared equations, and the runs with equal results."""
    ran = f" (run {', '.join(shown.ran)} with equal results)" if shown.ran else ""
    return f"{count(shown.equations, 'equation')}{ran}"


def _record(view: View, options: TransformedSource, *, verified: bool) -> dict[str, object]:
    """Return the first keys of the object that `--json` prints."""
    return {
        "filename": view.answer.question.path,
        "function": view.subject.name,
        "set": view.answer.question.set.name,
        "inputs": inputs.record(view),
        "style": options.style,
        "transform": options.transform,
        "derivatives": options.derivatives,
        "verified": verified,
        **caveats.record(view.caveats),
    }


def _success_record(written: _Written) -> dict[str, object]:
    """Return the object that `--json` prints for verified source."""
    shown = written.shown
    return {
        **_record(written.view, written.options, verified=True),
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
        "python": written.python,
    }
