"""A program file in another language: what `jaxsight sourcerize PROGRAM` prints."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path

from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import FOUND, CommandError, failing_on
from jaxsight.cli.output.file_writing import write_file
from jaxsight.cli.output.notes import print_inputs, print_notes
from jaxsight.cli.output.printing import Printer, print_document, print_json
from jaxsight.cli.program_files.content import read_program
from jaxsight.cli.sources.arguments import Address
from jaxsight.cli.traced_view import trace_view
from jaxsight.features.model import VirtualText
from jaxsight.text.inert import block, one_line
from jaxsight.text.units import count
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import GRAPH, STABLEHLO, UNOPTIMIZED, TransformedSource
from jaxsight.workers.program_files import NotRead, NotTimely, program_text
from jaxsight_source.options import ProgramLanguage, ProgramText


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file, or `-` for stdin, the language that is wanted, and options for Python."""

    path: str
    language: ProgramLanguage
    options: TransformedSource
    python: str
    limit: float
    """Seconds after which it is not read any further."""

    async def write(self, output: Path | None, *, is_check: bool, as_json: bool) -> int:
        """Print the program, or write it to a file; return the exit status.

        Raises:
            CommandError: the file cannot be read, or an option requires a function.
        """
        if self.options.transform or self.options.sources:
            raise CommandError("--transform and --sources require a function")
        if self.options.constants == "npz":
            raise CommandError("--constants npz requires a function; use --constants argument")
        wanted = {"to": self.language, "options": asdict(self.options.plain)}
        content = await asyncio.to_thread(read_program, self.path)
        errors = Printer(stderr=True)
        try:
            shown = await program_text(self.python, content, wanted, self.limit)
        except NotTimely as error:
            raise CommandError(f"{error}; raise --timeout") from error
        except NotRead as problem:
            if as_json:
                print_json({**self._record("", None, verified=False), "reason": str(problem)})
            elif is_check and problem.different:
                Printer().print(block(str(problem)))
            else:
                errors.labelled("error", "bold red", str(problem))
            return FOUND
        if shown.opaque and not as_json:
            calls = ", ".join(shown.opaque)
            errors.print(f"note: calls of code that the file only names: {one_line(calls)}")
        if output is not None and not is_check:
            await asyncio.to_thread(write_file, output, shown.text.encode())
        if as_json:
            print_json(self._success_record(shown))
        elif is_check:
            Printer().print(f"{self.path}: {verdict(shown)}")
        elif output is None:
            print_document(shown.text, "python" if self.language == "python" else "")
        return 0

    def _record(self, function: str, source: str | None, *, verified: bool) -> dict[str, object]:
        return {
            "filename": self.path,
            "function": function,
            "language": self.language,
            "format": source,
            "verified": verified,
            "interpreter": self.python,
        }

    def _success_record(self, shown: ProgramText) -> dict[str, object]:
        return {
            **self._record(shown.name, shown.source, verified=bool(shown.proofs)),
            "equations": shown.equations,
            "ran": [proof for proof in shown.proofs if proof not in ("jaxpr", "stablehlo")],
            "opaque": list(shown.opaque),
            "source": shown.text,
        }


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


_VIEWS = {"jaxpr": "jaxpr", "stablehlo": STABLEHLO, "hlo": UNOPTIMIZED, "graph": GRAPH}


async def write_ir(
    run: CommandRun,
    address: Address,
    set_name: str | None,
    language: ProgramLanguage,
    output: Path | None,
    *,
    as_json: bool,
) -> int:
    """Print a function's program with the lines that it comes from; return the exit status.

    Raises:
        CommandError: the function does not exist, or its program cannot be shown.
    """
    errors = Printer(stderr=True)
    view = await trace_view(run, address, address.read(), set_name, errors)
    if not isinstance(view.answer.reply, Traced):
        return FOUND
    print_inputs(errors, view)
    print_notes(errors, str(address.path), view.caveats)
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
