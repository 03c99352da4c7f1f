"""The tables of operations, and names of operations as people and programs write them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jaxsight.features.printed_programs.program import HLO, JAXPR, STABLEHLO, PrintedProgram
from jaxsight.files import reading
from jaxsight.text.markdown import prose, span

_FILES = {JAXPR: "primitives.txt", STABLEHLO: "stablehlo.txt", HLO: "hlo.txt"}
_ROW = re.compile(r"(?P<name>[\w.\-]+)(?:=(?P<words>[\w.]+))?(?:: (?P<explanation>.+))?")

_SHORT = {"module": "builtin.module", "call": "func.call", "return": "func.return"}
"""Operations that MLIR prints without their dialect."""
_PART = re.compile(r"(?P<whole>.+)-(?P<part>start|update|done)")
"""Part of an asynchronous instruction: XLA prints `slice-start` for the `async-start` of a `slice`
(`HloAsyncInstruction`, xla/hlo/ir/hlo_instructions.cc)."""
_PREFIXES = ("jax.lax.", "lax.", "jaxpr.", "hlo.")
"""What people may write before the name of a primitive or an HLO instruction."""
_MOST_SIMILAR = 3
_OPERATION = re.compile(
    r"(?<![\w#!.@%])(?:(?:stablehlo|func|sdy|mhlo|chlo)\.\w+|module|call|return)\b(?! = )"
)
"""Operations in a line of StableHLO, which may apply several."""


@dataclass(frozen=True, slots=True)
class ExplainedOperation:
    """A primitive (in a jaxpr) or an operation, with what it does and a link to its reference."""

    name: str
    language: str
    explanation: str
    link: str

    @property
    def markdown(self) -> str:
        """The explanation on one line, with the link."""
        return f"{span(self.name)}: {prose(self.explanation)} ([reference]({self.link}))"


@cache
def operations(language: str) -> dict[str, ExplainedOperation]:
    """Return the operations of a language by name; StableHLO's are with their dialect."""
    found: dict[str, ExplainedOperation] = {}
    link = ""
    text = reading.text(Path(__file__).with_name(_FILES[language]))
    for line in filter(None, text.splitlines()):
        if line.startswith("# "):
            link = line.removeprefix("# ")
            continue
        row = _ROW.fullmatch(line)
        assert row is not None, line
        name = row["name"]
        explanation = row["explanation"]
        if explanation is None:
            explanation = operations(STABLEHLO)[f"stablehlo.{name.replace('-', '_')}"].explanation
        words = row["words"] or (name.replace("-", "") if language == HLO else name)
        if language == STABLEHLO and "." not in name:
            name = f"stablehlo.{name}"
        found[name] = ExplainedOperation(name, language, explanation, link.format(words))
    return found


def explained(language: str, name: str) -> ExplainedOperation | None:
    """Return the explanation of an operation, named as a printed program names it, if known."""
    if language not in _FILES:
        return None
    found = operations(language)
    if language == STABLEHLO:
        name = _SHORT.get(name, name)
        if name.startswith("mhlo.") and name not in found:
            return _of_mhlo(name.removeprefix("mhlo."))
    elif language == HLO and name not in found and (part := _PART.fullmatch(name)):
        whole = found.get(part["whole"])
        stage = found[f"async-{part['part']}"]
        if whole is not None:
            does = stage.explanation.replace("async-", f"{part['whole']}-")
            does = f"{does}; this one: {whole.explanation}"
            return ExplainedOperation(name, language, does, stage.link)
    return found.get(name)


def _of_mhlo(name: str) -> ExplainedOperation | None:
    """Return the explanation of an operation of MHLO, XLA's own copy of StableHLO."""
    stablehlo, hlo = operations(STABLEHLO), operations(HLO)
    return (
        stablehlo.get(f"stablehlo.{name}")
        or stablehlo.get(f"chlo.{name}")
        or hlo.get(name.removeprefix("xla.").replace("_", "-"))
    )


def named(word: str) -> list[ExplainedOperation]:
    """Return what has a name that a person wrote: `dot_general` is in a jaxpr and in StableHLO."""
    for prefix in _PREFIXES:
        word = word.removeprefix(prefix)
    forms = [word, word.replace("_", "-"), word.replace("-", "_"), f"stablehlo.{word}"]
    found = {
        (language, operation.name): operation
        for language in _FILES
        for form in [*forms, _SHORT.get(word, word)]
        if (operation := explained(language, form)) is not None
    }
    return list(found.values())


def similar(word: str) -> list[str]:
    """Return names of operations that are spelled like a word that is none, the closest first."""
    names = {name for language in _FILES for name in operations(language)}
    names |= {name.partition(".")[2] for name in names if "." in name}
    return difflib.get_close_matches(word.lower(), sorted(names), _MOST_SIMILAR)


# The explanation of the operation at a place in a printed program.


def explained_at(
    program: PrintedProgram, offset: int
) -> tuple[ExplainedOperation, int, int] | None:
    """Return the operation at an offset with its start and end; `None` if there is none."""
    if program.language == STABLEHLO:
        line = program.line(offset)
        matches = _OPERATION.finditer(program.text, program.lines[line], program.end(line))
        found = [match.span() for match in matches]
    elif (statement := program.statement_at(offset)) is not None:
        start = statement.operation_start
        found = [(start, start + len(statement.operation))]
    else:
        found = []
    for start, end in found:
        operation = explained(program.language, program.text[start:end])
        if start <= offset <= end and operation is not None:
            return operation, start, end
    return None
