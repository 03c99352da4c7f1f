"""The page *Reading what JAX makes*: its text, `page.md`, with what becomes of the examples.

A line `<!-- loop: jaxpr hlo -->` of the text stands for these forms of a function of
`examples/reading.py`. The notes below it begin with code that the forms contain.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import jax
import jaxlib

from jaxsight import sourcerize
from jaxsight.features.explained_operations.table import ExplainedOperation, explained_at
from jaxsight.features.model import VirtualText
from jaxsight.features.printed_programs.program import LANGUAGES
from jaxsight.features.printed_programs.read import read
from jaxsight.session import Session
from jaxsight.text.markdown import prose
from tests.quiet import QUIET

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reading.md"
EXAMPLES = ROOT / "examples" / "reading.py"
TEMPLATE = Path(__file__).with_name("page.md")
TARGET = "cuda:h100"
_DEVICE = "an NVIDIA H100"
_MADE_WITH = "<!-- made with -->"

_SHOWN = re.compile(r"^<!-- (\w+): ([\w ]+) -->\n", re.MULTILINE)
_NOTE = re.compile(r"^\* (.*(?:\n  .*)*)\n", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_TITLES = {
    "jaxpr": "jaxpr",
    "stablehlo": "StableHLO",
    "hlo": "HLO",
    "kernels": "kernels",
    "source": "written from the StableHLO",
}
_COMMENTS = {"jaxpr": "#", "stablehlo": "//", "hlo": "//", "kernels": "#"}
_LEFT_OUT = re.compile(
    r", (?:backend_config|frontend_attributes|entry_computation_layout)=\{.*$"
    r"| attributes \{mhlo[^}]*\}"
    r"| \{jax\.result_info = [^}]*\}"
    r"|^trace .*\n",
    re.MULTILINE,
)
"""What says nothing about a small program, or differs from run to run."""
_FIRST = ord("①")

Forms = Mapping[str, VirtualText]


class StaleNote(Exception):
    """A note is about code that is not shown above it."""


async def page() -> str:
    """Return the page, made with the installed JAX.

    Raises:
        StaleNote: a note of the text is about code that is not shown.
    """
    _, *rest = parts = _SHOWN.split(TEMPLATE.read_text(encoding="utf-8"))
    wanted = list(zip(rest[0::3], rest[1::3], rest[2::3], strict=True))
    shown = await _shown(
        [(function, form) for function, forms, _ in wanted for form in forms.split()]
    )
    made = [parts[0].replace(_MADE_WITH, _made_with())]
    explained: set[str] = set()
    above: dict[str, str] = defaultdict(str)
    for function, names, text in wanted:
        forms = {name: shown[function][name] for name in names.split()}
        marks = _marks(shown[function])
        blocks = {name: _block(name, form, marks) for name, form in forms.items()}
        beside = "" if above[function] else f"{_python(function, marks)}\n\n{blocks.pop('jaxpr')}"
        above[function] += "\n".join([beside, *blocks.values()])
        for note in _NOTE.findall(text):
            if (code := _CODE.search(note)) is None or code[1] not in above[function]:
                raise StaleNote(f"{function}: {note}")
        if beside:
            made.append(f'<div class="grid" markdown>\n\n{beside}\n\n</div>\n')
        made += [f"\n{block}\n" if beside else f"{block}\n" for block in blocks.values()]
        made.append(_with_operations(text, _new(forms, explained)))
    return "".join(made)


def _made_with() -> str:
    return (
        f"JAX {jax.__version__} (jaxlib {jaxlib.__version__}) made the jaxprs and StableHLO, and its XLA compiled\n"
        f"the HLO and kernels ahead of time for {_DEVICE}.\n"
        "Other versions and devices make other programs: fewer kernels, other fusions.\n"
        "`python -m tools.reading --write` makes this page, and a test compares it."
    )


async def _shown(wanted: Iterable[tuple[str, str]]) -> dict[str, dict[str, VirtualText]]:
    """Return forms of the examples, by function and name."""
    session = Session()
    session.configure([str(EXAMPLES.parent)], {**QUIET, "python": sys.executable, "target": TARGET})
    session.open(str(EXAMPLES), EXAMPLES.read_text(encoding="utf-8"))
    found: dict[str, dict[str, VirtualText]] = defaultdict(dict)
    try:
        for function, form in wanted:
            if form == "source":
                lowered = await session.show(str(EXAMPLES), function, "stablehlo")
                source = sourcerize(lowered.text.encode(), style="pretty")
                found[function][form] = VirtualText("", source)
            else:
                found[function][form] = await session.show(str(EXAMPLES), function, form)
    finally:
        await session.aclose()
    return found


def _marks(forms: Forms) -> dict[int, str]:
    """Return the mark of each line of the examples that something was made of, in order."""
    lines = {link.range.start.line for form in forms.values() for link in form.links if link.range}
    return {line: chr(_FIRST + number) for number, line in enumerate(sorted(lines))}


def _block(name: str, form: VirtualText, marks: Mapping[int, str]) -> str:
    """Return a form in Markdown; the first line of each equation has the mark of its source."""
    marked: dict[int, str] = defaultdict(str)
    begun: set[str] = set()
    for link in form.links:
        if link.range is None or (name == "jaxpr" and link.path in begun):
            continue
        begun.add(link.path)
        marked[link.line] = "".join(sorted({*marked[link.line], marks[link.range.start.line]}))
    lines = []
    for number, line in enumerate(form.text.rstrip().split("\n")):
        comment = f"  {_COMMENTS[name]} {marked[number]}" if number in marked else ""
        lines.append(_LEFT_OUT.sub("", line) + comment)
    text = _LEFT_OUT.sub("", "\n".join(lines) + "\n")
    language = "python" if name == "source" else "text"
    return f'```{language} title="{_TITLES[name]}"\n{text}```'


def _python(function: str, marks: Mapping[int, str]) -> str:
    """Return a function, and others that its marks are in, without docstrings."""
    source = EXAMPLES.read_text(encoding="utf-8")
    lines = source.split("\n")
    written = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef) or node.end_lineno is None:
            continue
        own = range(node.lineno - 1, node.end_lineno)
        if node.name == function or any(line in own for line in marks):
            docstring = node.body[0]
            hidden = range(docstring.lineno - 1, docstring.end_lineno or 0)
            kept = [line for line in own if line not in hidden]
            if not lines[kept[1]]:
                del kept[1]
            marked = (
                f"{lines[line]}  # {marks[line]}" if line in marks else lines[line] for line in kept
            )
            written.append("\n".join(marked))
    text = "\n\n\n".join(written)
    return f'```python title="examples/reading.py"\n{text}\n```'


def _new(forms: Forms, explained: set[str]) -> dict[str, list[ExplainedOperation]]:
    """Return operations that were not explained yet by their explanations, in order."""
    found: dict[str, list[ExplainedOperation]] = defaultdict(list)
    for language, form in forms.items():
        if language not in LANGUAGES:
            continue
        program = read(language, form.text)
        for word in re.finditer(r"[\w.\-]+", form.text):
            at = explained_at(program, word.start())
            if at is not None and at[0].link not in explained:
                explained.add(at[0].link)
                found[at[0].explanation].append(at[0])
    return found


def _with_operations(text: str, new: Mapping[str, Iterable[ExplainedOperation]]) -> str:
    """Return a text whose notes are followed by a table of operations."""
    if not new:
        return text
    rows = [
        f"| {', '.join(f'[`{each.name}`]({each.link})' for each in operations)} | {prose(explanation)} |"
        for explanation, operations in new.items()
    ]
    table = "\n".join(["| operation | |", "|---|---|", *rows])
    end = max((note.end() for note in _NOTE.finditer(text)), default=0)
    return f"{text[:end]}\n{table}\n{text[end:]}"
