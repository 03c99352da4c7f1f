"""Write a function as verified source in pure JAX: `jaxsight sourcerize FILE:FUNCTION`.

Stdout is the module, or the verdict with `--check`. Functions in other languages than Python, and
files of StableHLO, HLO and exports in place of functions, are programs whose text is shown.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path

from jaxsight.cli import parameters as common
from jaxsight.cli.command_run import CommandRun, start_run
from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output.notes import print_header
from jaxsight.cli.output.printing import (
    Printer,
    Record,
    print_document,
    print_json,
    write_file,
)
from jaxsight.cli.sources.arguments import STDIN, Address, parse_address
from jaxsight.cli.traced_view import trace_view
from jaxsight.cli.user_python import user_interpreter
from jaxsight.features import caveats, inputs
from jaxsight.features.caveats import commented
from jaxsight.features.fixes.scheduler import location
from jaxsight.features.model import VirtualText
from jaxsight.features.virtual_documents.show import with_settings
from jaxsight.features.virtual_documents.sourcerized import NotSourcerized, label
from jaxsight.files import reading
from jaxsight.queries.traces.located_answer import View
from jaxsight.text import units
from jaxsight.text.inert import block, one_line
from jaxsight.text.units import count
from jaxsight.wire.messages.requests import (
    GRAPH,
    STABLEHLO,
    UNOPTIMIZED,
    Transform,
    TransformedSource,
)
from jaxsight.workers.program_files import NotRead, NotTimely, program_text
from jaxsight_source.options import Constants, Derivatives, ProgramLanguage, ProgramText, Style

READ_WITHIN = 300.0
"""Seconds, a choice: ten times what the largest program of a model takes. A small file may take
forever."""

_OF_PYTHON = frozenset({".py", ".pyi", ".pyw", ".ipynb"})

_LABELS = {
    "primal": " (derivatives not preserved)",
    "first": " (first-order derivatives only)",
}
"""Additions to the verdict where not all derivatives are preserved."""

_VIEWS = {"jaxpr": "jaxpr", "stablehlo": STABLEHLO, "hlo": UNOPTIMIZED, "graph": GRAPH}


@command
async def sourcerize(
    function: str,
    *,
    set_name: common.SetName = None,
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
    python: common.Python = None,
    allow: common.Allow = None,
    which: common.WhichInputs = common.InputsChoice.ALL,
    limit: float = READ_WITHIN,
    as_json: common.AsJson = False,
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
    if _is_program_file(function):
        return await _write_file(function, to, options, python, limit, output, check, as_json)
    address = parse_address(function)
    if constants == "npz" and output is None and not check:
        raise CommandError("--constants npz requires --output: the arrays go in a file next to it")
    errors = Printer(stderr=True)
    async with start_run([address.path], python, allow, which) as run:
        if (view := await trace_view(run, address, set_name, errors)) is None:
            return FOUND
        print_header(errors, view)
        if to != "python":
            return await _write_ir(run, address, to, output, as_json)
        path, traced_by = str(address.path), {"python": run.python(address.path)}
        try:
            options = with_settings(run.session.engine, path, options)
            shown = await run.get(run.session.show(path, address.function, options))
        except NotSourcerized as error:
            record = {**_record(view, options, verified=False), "reason": str(error)}
            return _print_problem(error, record | traced_by, check, as_json)
    text = commented(shown, options.style)
    if output is not None and not check:
        await asyncio.to_thread(_write_files, output, text)
    if as_json:
        print_json({**_record(view, options, verified=True), **_of_source(shown), **traced_by})
    elif check:
        _print_verdict(label(address.function, options.transform), shown, options)
    elif output is None:
        print_document(text.text, "python")
    return 0


def _is_program_file(text: str) -> bool:
    """Return whether an argument names a file without Python code, or stdin."""
    return text == STDIN or (reading.is_file(text) and Path(text).suffix not in _OF_PYTHON)


def _print_verdict(name: str, shown: VirtualText, options: TransformedSource) -> None:
    """Print the number of compared equations, and the runs with equal results."""
    ran = f" (run {', '.join(shown.ran)} with equal results)" if shown.ran else ""
    proofs = f"{count(shown.equations, 'equation')}{ran}"
    added = _LABELS.get(options.derivatives or "", "")
    Printer().print(f"{name}: the source is the same program, {proofs}{added}")


def _print_problem(
    error: NotSourcerized | NotRead, record: Record, is_check: bool, as_json: bool
) -> int:
    """Print why there is no source; return the exit status."""
    if as_json:
        print_json(record)
    elif is_check and error.different:
        Printer().print(block(str(error)))
    else:
        Printer(stderr=True).labelled("error", "bold red", str(error))
    return FOUND


def _write_files(path: Path, shown: VirtualText) -> None:
    if shown.companion:
        write_file(path.with_suffix(".npz"), shown.companion)
    write_file(path, shown.text.encode())


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


def _of_source(shown: VirtualText) -> dict[str, object]:
    """Return the keys about verified source."""
    return {
        "equations": shown.equations,
        "ran": list(shown.ran),
        "source": shown.text,
        "links": [
            {
                "row": link.line + 1,
                "equation": link.path,
                "location": location(link.range.start),
                "end_location": location(link.range.end),
            }
            for link in shown.links
            if link.range is not None
        ],
    }


async def _write_file(
    path: str,
    language: ProgramLanguage,
    options: TransformedSource,
    python: str | None,
    limit: float,
    output: Path | None,
    is_check: bool,
    as_json: bool,
) -> int:
    """Write the program of a file, or of stdin, in another language; return the exit status.

    Raises:
        CommandError: the file cannot be read, or an option requires a function.
    """
    interpreter = user_interpreter(python)
    if options.transform or options.sources:
        raise CommandError("--transform and --sources require a function")
    if options.constants == "npz":
        raise CommandError("--constants npz requires a function; use --constants argument")
    wanted = {"to": language, "options": asdict(options.plain)}
    content = await asyncio.to_thread(_read_program, path)
    record: dict[str, object] = {"filename": path, "function": "", "language": language}
    record |= {"format": None, "verified": False, "interpreter": interpreter}
    try:
        shown = await program_text(interpreter, content, wanted, limit)
    except NotTimely as error:
        raise CommandError(f"{error}; raise --timeout") from error
    except NotRead as error:
        return _print_problem(error, {**record, "reason": str(error)}, is_check, as_json)
    if shown.opaque and not as_json:
        calls = one_line(", ".join(shown.opaque))
        Printer(stderr=True).print(f"note: calls of code that the file only names: {calls}")
    if output is not None and not is_check:
        await asyncio.to_thread(write_file, output, shown.text.encode())
    if as_json:
        print_json(
            record
            | {"function": shown.name, "format": shown.source, "verified": bool(shown.proofs)}
            | {
                "equations": shown.equations,
                "ran": [proof for proof in shown.proofs if proof not in ("jaxpr", "stablehlo")],
                "opaque": list(shown.opaque),
                "source": shown.text,
            }
        )
    elif is_check:
        Printer().print(f"{path}: {verdict(shown)}")
    elif output is None:
        print_document(shown.text, "python" if language == "python" else "")
    return 0


def _read_program(text: str) -> bytes:
    """Return the content of a program file, or of stdin.

    Raises:
        CommandError: it cannot be read, or is too large.
    """
    if text != STDIN:
        with failing_on(reading.UnreadableError):
            return reading.data(text)
    content = sys.stdin.buffer.read(reading.SOURCE + 1)
    if len(content) > reading.SOURCE:
        raise CommandError(f"stdin has more than {units.size(reading.SOURCE)}")
    return content


def verdict(shown: ProgramText) -> str:
    """Return how a program's source was proved."""
    if not shown.proofs:
        return f"read as {shown.source}, {count(shown.equations, 'equation')}"
    others = ("jaxpr", "stablehlo", "bits")
    ways = [proof for proof in shown.proofs if proof not in others]
    lowers = "lowers to the same StableHLO" if "stablehlo" in shown.proofs else "is the same jaxpr"
    bits = ", with the same bits" if "bits" in shown.proofs else ""
    ran = f" (run {', '.join(ways)} with equal results{bits})" if ways else ""
    return f"the source {lowers}, {count(shown.equations, 'equation')}{ran}"


async def _write_ir(
    run: CommandRun, address: Address, language: ProgramLanguage, output: Path | None, as_json: bool
) -> int:
    """Print a traced function's program with the lines that it comes from; return the exit status.

    Raises:
        CommandError: its program cannot be shown.
    """
    with failing_on(LookupError):
        shown = await run.get(
            run.session.show(str(address.path), address.function, _VIEWS[language])
        )
    text = _with_lines(shown, address.path.name, language)
    if output is not None:
        await asyncio.to_thread(write_file, output, text.encode())
    if as_json:
        record = {
            "filename": str(address.path),
            "function": address.function,
            "language": language,
            "format": None,
            "verified": False,
            "interpreter": run.python_path(address.path),
            "source": text,
        }
        print_json(record)
    elif output is None:
        print_document(text)
    return 0


def _with_lines(shown: VirtualText, file: str, language: ProgramLanguage) -> str:
    """Return a text with `model.py:12` at the end of lines, in a graph in the boxes."""
    lines = shown.text.split("\n")
    linked = {link.line: link.range.start.line + 1 for link in shown.links if link.range}
    if language == "jaxpr":  # of an equation on several lines, the first
        first: dict[str, int] = {}
        for link in shown.links:
            first.setdefault(link.path, link.line)
        linked = {line: linked[line] for line in first.values() if line in linked}
    for number, row in linked.items():
        place = f"{file}:{row}"
        if language == "graph":
            lines[number] = f'{lines[number].removesuffix(chr(34) + "];")}\\n{place}"];'
        else:
            lines[number] += f"  {'#' if language == 'jaxpr' else '//'} {place}"
    return "\n".join(lines)
