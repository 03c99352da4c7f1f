"""Whoever shows a compiled program shows the same figures: each view of it is read, and compared.

The programs are all functions with example inputs of `examples/` and of fixtures, each on four
targets; `search` holds ten of the cases in the gate. Figures in words are read as words: what the
JSON says exactly is written with `text/units`, and has to stand in the view.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from jaxsight.features.asking.asking import AgentQuestion, Topic
from jaxsight.features.findings.locked import facts_of_kernels
from jaxsight.features.kernels.table import record
from jaxsight.features.named_function import compiled_function
from jaxsight.features.panel import ReportedFunction
from jaxsight.features.panel import record as panel_record
from jaxsight.figures.summary import NOT_YET
from jaxsight.library.kernels import Kernels
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.sweeps.points import point_of
from jaxsight.text import units
from tests.cli.published import SCHEMAS
from tests.searches import part
from tests.sessions import session_without_spare
from tests.terminal import jaxsight

pytestmark = [pytest.mark.search, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
TARGETS = ("cpu", "cuda:h100", "cuda:a100", "cuda:h100x8")
FILES = [
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "tests/fixtures/hints").glob("*.py")),
]


def functions(file: Path) -> Iterator[str]:
    """Yield the functions of a file that have example inputs of their own."""
    for node in ast.parse(re.sub("⟦[^⟧]*⟧", "", file.read_text(encoding="utf-8"))).body:
        if isinstance(node, ast.FunctionDef) and "Example inputs" in (
            ast.get_docstring(node) or ""
        ):
            yield node.name


def copied(file: Path, folder: Path) -> tuple[Path, str]:
    """Copy a file without the hints in it into a folder, and return its text."""
    source = re.sub("⟦[^⟧]*⟧", "", file.read_text(encoding="utf-8"))
    path = folder / file.name
    path.write_text(source, encoding="utf-8")
    return path, source


CASES = part(
    [
        (file, function, target)
        for file in FILES
        for function in functions(file)
        for target in TARGETS
    ]
)


@dataclass
class Shown:
    """What a view is made from, and what it has to show."""

    session: Session
    path: str
    function: str
    figures: LocatedFigures
    expected: dict[str, Any]
    """The JSON of `jaxsight kernels`."""

    @property
    def counts(self) -> tuple[str, str]:
        """The kernels and launches, as words have them."""
        graph = self.figures.graph
        launches = units.interval(graph.launches_at_least, graph.launches_at_most)
        return units.interval(graph.kernel_count, graph.kernels_at_most), launches

    @property
    def temp(self) -> str:
        """The beginning of the temporary memory in words; empty if it is not known."""
        return units.size(self.expected["temp_bytes"]) if self.expected["temp_bytes"] >= 0 else ""

    def rows(self) -> list[tuple[str, str, str]]:
        """The bytes that kernels read and write, in words, and their fusion boundaries."""
        return [
            (units.size(each["bytes_in"]), units.size(each["bytes_out"]), each["ends_because"])
            for each in self.expected["kernels"]
        ]


POSITION = {"line": 0, "character": 0}
RANGE = {"start": POSITION, "end": POSITION}


def hold_panel(answer: Any) -> None:
    """Fail if the schema of panels does not describe an answer, with all of its fields."""
    schema = json.loads((SCHEMAS / "panel.json").read_text(encoding="utf-8"))
    described = schema["$defs"]
    extended = {each["$ref"] for of in described.values() for each in of.get("allOf", ())}
    for name, of in described.items():
        if "properties" in of and f"#/$defs/{name}" not in extended:
            of["unevaluatedProperties"] = False
    Draft202012Validator({**schema, "$ref": "#/$defs/Shown"}).validate(answer)


async def hover(shown: Shown) -> None:
    subject = shown.figures.view.name_range.start
    position = Position(subject.line, subject.column)
    found = await shown.session.hover(shown.path, position)
    while found is not None and re.search(rf"\| {NOT_YET} \||\*compiling", found.markdown):
        await asyncio.sleep(0.1)  # it waits for no compile, and this one is known
        found = await shown.session.hover(shown.path, position)
    assert found is not None
    head, row = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in re.findall(r"^\|.*\|$", found.markdown, re.MULTILINE)[0:3:2]
    )
    cells = dict(zip(head, row, strict=True))
    assert (cells["kernels"], cells["launches"]) == shown.counts
    assert shown.temp in cells["temporaries"]
    seconds = shown.expected["estimate_seconds"]
    assert units.time(seconds) in cells["time"] if seconds else cells["time"] == "–"


async def hint(shown: Shown) -> None:
    hints = await shown.session.hints(shown.path, wait=True)
    line = shown.figures.view.name_range.start.line
    own = shown.figures.view.subject_range
    (found,) = (
        hint
        for hint in hints
        if "▣" in hint.label and line <= hint.range.start.line <= own.end.line
    )
    number = shown.counts[0]
    assert f"{number} kernel{'' if number == '1' else 's'}" in found.label
    rows = re.findall(r"^\| \d+ \|.*$", found.tooltip, re.MULTILINE)
    assert len(rows) == min(20, shown.expected["kernel_count"])
    for row, (read, written, reason) in zip(rows, shown.rows(), strict=False):
        cells = [cell.strip().replace("\\", "") for cell in row.split("|")]
        assert {read, written, reason} <= set(cells)


async def lens(shown: Shown) -> None:
    titles = [each.title for each in await shown.session.lenses(shown.path)]
    most = shown.expected["temp_bytes_at_most"]
    is_range = most is not None and most > shown.expected["temp_bytes"]
    temp = f"≤ {units.size(most)}" if is_range else shown.temp
    known = f": {shown.counts[0]}" + (f" · {temp}" if temp else "")
    assert any(known in title for title in titles), titles


async def panel(shown: Shown) -> None:
    found = await shown.session.panel(shown.path, shown.function)
    assert found is not None
    answer = panel_record(found, lambda _: {"uri": "", "range": RANGE}, [], {})
    hold_panel(json.loads(json.dumps(answer)))
    drawn: Any = answer["drawn"]
    assert drawn["assigned"] == shown.expected["temp_bytes"]
    assert drawn["launchesAtLeast"] == shown.expected["launches_at_least"]
    assert drawn["headline"].partition(" · ⚠")[0] == shown.figures.headline  # with caveats
    for kernel, own in zip(drawn["kernels"], shown.expected["kernels"], strict=True):
        assert sum(value["bytes"] for value in kernel["inputs"]) == own["bytes_in"]
        assert sum(value["bytes"] for value in kernel["outputs"]) == own["bytes_out"]
        assert (kernel["endsBecause"], kernel["what"]) == (own["ends_because"], own["what"])
        assert kernel["seconds"] in (own["estimate_seconds"], None)


async def kernels_document(shown: Shown) -> None:
    text = (await shown.session.show(shown.path, shown.function, "kernels")).text
    assert text.startswith(f"{shown.function}: {shown.figures.headline}\n")
    for index, (read, written, _) in enumerate(shown.rows()):
        if shown.figures.graph.kernels[index].collective is None:
            assert re.search(rf"kernel {index + 1}: .*{read} in, {written} out", text)


async def answer(shown: Shown) -> None:
    question = partial(AgentQuestion, shown.path, shown.function, target=shown.figures.target.name)
    found = await shown.session.ask(question(topic=Topic.KERNELS, name=shown.function))
    text, own = found.text(100_000), found.record(1_000_000, lambda value: len(repr(value)))
    assert str(own["summary"]).startswith(shown.figures.headline)
    listed: Any = own["kernels"]
    for each in listed:
        kernel = shown.expected["kernels"][each["number"] - 1]
        assert {**kernel, **each, "number": 0} == {**kernel, "number": 0}
        read, written = units.size(kernel["bytes_in"]), units.size(kernel["bytes_out"])
        assert re.search(rf"#{each['number']} .*{read} in, {written} out", text)
    assert len(listed) == shown.expected["kernel_count"]


async def notebook(shown: Shown) -> None:
    text = str(Kernels(shown.function, shown.figures))  # type: ignore[arg-type]
    head, _, *rows = text.splitlines()
    assert head == f"{shown.function}: {shown.figures.headline}"
    for row, (read, written, reason) in zip(rows, shown.rows(), strict=False):
        assert re.search(rf"\s{read}\s+{written}\s.*{re.escape(reason)}", row)


async def lock(shown: Shown) -> None:
    facts = facts_of_kernels(shown.figures)
    assert facts.launches == shown.expected["launch_count"]
    assert facts.temporaries == shown.expected["temp_bytes"]
    assert facts.moved == shown.expected["moved_bytes"]
    assert [(each.reason, each.bytes) for each in facts.kernels] == [
        (each["ends_because"], each["bytes_out"]) for each in shown.expected["kernels"]
    ]


async def report(shown: Shown) -> None:
    entry = ReportedFunction(shown.session.engine, shown.figures.view, shown.figures, "model.py")
    figures = dict(entry.figures())
    assert (figures["kernels"], figures["launches"]) == shown.counts
    assert shown.temp in figures["temporaries"]
    seconds = shown.expected["estimate_seconds"]
    assert ("time (estimate)" in figures) == (seconds is not None)
    assert seconds is None or units.time(seconds) in figures["time (estimate)"]


async def sweep(shown: Shown) -> None:
    point = point_of({}, shown.figures)
    assert point.kernel_count == shown.expected["kernel_count"]
    assert point.launch_count == shown.expected["launch_count"]
    assert (point.temp_bytes if point.temp_bytes is not None else -1) == (
        shown.expected["temp_bytes"]
    )
    assert point.estimate_seconds == shown.expected["estimate_seconds"]


VIEWS: tuple[Callable[[Shown], Any], ...] = (
    hover,
    hint,
    lens,
    panel,
    kernels_document,
    answer,
    notebook,
    lock,
    report,
    sweep,
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def session(runner: asyncio.Runner) -> Iterator[Session]:
    session = session_without_spare()
    yield session
    runner.run(session.aclose())


async def seen(session: Session, path: str, function: str) -> tuple[dict[str, Any], Shown] | None:
    """Compile a function, and read each view of it; `None` where it cannot be compiled."""
    try:
        _, figures = await compiled_function(session.engine, path, function, complete=True)
    except LookupError as error:  # some fixtures have an error; nothing else may be missing
        if "cannot be traced" not in str(error):
            raise
        return None
    if not isinstance(figures, LocatedFigures):  # no view has figures
        assert figures.trouble.kind == "target"
        return None
    expected: dict[str, Any] = json.loads(json.dumps(record(figures, function)))
    shown = Shown(session, path, function, figures, expected)
    for view in VIEWS:
        try:
            await view(shown)
        except Exception as error:
            raise AssertionError(f"{view.__name__}: {error}") from error
    return expected, shown


@pytest.mark.parametrize(
    ("file", "function", "target"), CASES, ids=[f"{f.stem}-{name}-{t}" for f, name, t in CASES]
)
def test_every_view_has_the_same_figures(
    file: Path,
    function: str,
    target: str,
    runner: asyncio.Runner,
    session: Session,
    tmp_path: Path,
) -> None:
    path, source = copied(file, tmp_path)
    quiet = {"examplesFromPrograms": False, "proposeInputs": False, "lens": True}

    async def open_file() -> None:
        session.configure([str(tmp_path)], {**quiet, "python": sys.executable, "target": target})
        session.open(str(path), source)

    runner.run(open_file())
    found = runner.run(seen(session, str(path), function))
    if found is None:
        return
    expected, shown = found
    session.close(str(path))
    as_json, as_text = (
        jaxsight("kernels", f"{file.name}:{function}", "-t", target, *form, cwd=tmp_path)
        for form in (["--json"], [])
    )
    printed = json.loads(as_json.stdout)
    timed = {"trace_seconds", "lower_seconds", "compile_seconds"}
    assert {name: printed[name] for name in expected.keys() - timed} == {
        name: each for name, each in expected.items() if name not in timed
    }
    head, *lines = as_text.stdout.splitlines()
    assert f"{function}: {shown.figures.headline}" in "\n".join([head, *lines])
    for index, (read, written, reason) in enumerate(shown.rows()[:50]):
        pattern = rf"^\s*{index + 1}\s.*\s{read}\s+{written}\s.*{re.escape(reason)}"
        assert re.search(pattern, as_text.stdout, re.MULTILINE), pattern
