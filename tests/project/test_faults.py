"""Faults of one line: which there are, how they are drawn, and which tests are theirs."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tools.faults.candidates import KINDS, edited, edits, is_fault, replaced
from tools.faults.choosing import Limits, chosen
from tools.faults.drawing import draw, resolved, shares
from tools.faults.index import Case, Index, reported, write
from tools.faults.rows import read
from tools.faults.scratch import Outcome, Scratch
from tools.faults.trying import GATE, LINE, NOTHING, Results, Trial, table

A, B, C = (f"tests/tools/test_faults.py::test_{name}" for name in "abc")


def faults(text: str) -> set[tuple[str, str]]:
    """The kinds of the faults of a text, with its lines with them."""
    found = [*edits(ast.parse(text), [line.encode() for line in text.split("\n")])]
    lines = text.split("\n")
    return {
        (edit.kind, line.strip())
        for edit in found
        if (line := edited(text, edit))
        and is_fault(text, replaced(text, edit.line, lines[edit.line - 1], line), edit.kind)
    }


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("x = a + b", "operator", {"x = a - b"}),
        ("é = (a) - (b)", "operator", {"é = (a) + (b)"}),
        ("x -= a", "operator", {"x += a"}),
        ("x = a and b and c", "operator", {"x = a or b and c"}),
        ("x = a == b", "operator", {"x = a != b"}),
        ("x = a < b", "operator", {"x = a <= b"}),
        ("x = a not in b", "operator", {"x = a in b"}),
        ("x = a * b", "operator", set()),
        ("if a:\n    f()", "condition", {"if not (a):"}),
        ("while not a:\n    f()", "condition", {"while a:"}),
        ("x = [y for y in z if y]", "condition", {"x = [y for y in z if not (y)]"}),
        ("x = f(0, True)", "constant", {"x = f(1, True)", "x = f(0, False)"}),
        ("def f(a):\n    return [a]", "return", {"return None", "return []", "return a"}),
        ("def f(self):\n    return None", "return", set()),
        ("async def f():\n    await g(1)", "await", {"g(1)"}),
        (
            "raise E(f'not {name} but it')",
            "message",
            {"raise E(f'altered {name} but it')", "raise E(f'not {name} altered it')"},
        ),
        ("x = 'a name'", "message", set()),
    ],
)
def test_kinds_of_faults(text: str, kind: str, expected: set[str]) -> None:
    assert {line for its_kind, line in faults(text) if its_kind == kind} == expected


@pytest.mark.parametrize(
    "text",
    [
        '"""The words of a docstring."""',
        "x: f(1 + 1)",
        "if TYPE_CHECKING:\n    x = 1",
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "log.info('so many words of %s', 1)",
        "class A:\n    def __repr__(self):\n        return 'one two three'",
        "f(timeout=1)",
        "@dataclass(frozen=True)\nclass A: ...",
    ],
)
def test_what_has_no_faults(text: str) -> None:
    assert faults(text) == set()


def test_a_fault_needs_its_line_as_it_was() -> None:
    assert replaced("a\nb\n", 2, "b", "c") == "a\nc\n"
    with pytest.raises(ValueError, match="line 2"):
        replaced("a\nB\n", 2, "b", "c")


def test_packages_have_shares_by_length_and_large_ones_at_least_one() -> None:
    assert shares({"a": 8000, "b": 600, "c": 50}, 10) == {"a": 9, "b": 1, "c": 0}


MODULE = """\
LIMIT = 7


def f(x, y=3):
    if x > LIMIT:
        return g(x,
                 5)
    return y
"""


@pytest.mark.parametrize(
    ("line", "executed", "expected"),
    [
        (5, {5: True}, (5,)),
        (5, {6: True}, ()),
        (7, {6: True, 8: True}, (6,)),
        (5, {5: False, 8: True}, (8,)),  # a function that an import calls
        (4, {4: True, 5: True, 8: True}, (5, 8)),  # a default of a parameter
        (1, {1: True, 5: True, 8: True}, (5,)),  # what reads the name
        (1, {1: True, 8: True}, (8,)),
    ],
)
def test_lines_whose_tests_are_those_of_a_fault(
    line: int, executed: dict[int, bool], expected: tuple[int, ...]
) -> None:
    tree = ast.parse(MODULE)
    edit = next(
        edit
        for edit in edits(tree, [each.encode() for each in MODULE.split("\n")])
        if edit.line == line
    )
    assert resolved(tree, edit, executed) == expected


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """A run of three tests, the second of which starts a process; the third fails."""
    root, lines = tmp_path / "root", tmp_path / "lines"
    (root / "server/jaxsight/box").mkdir(parents=True)
    (root / "server/jaxsight/box/module.py").write_text(MODULE, encoding="utf-8")
    (root / "tests/project").mkdir(parents=True)
    (root / "tests/project/test_faults.py").touch()
    lines.mkdir()
    place = "/box/module.py"
    a, b, c = (name.replace("tools", "project") for name in (A, B, C))
    (lines / "1").write_text(
        f"{place}:1\n{place}:4\n#{a}\n{place}:5\n#\n{place}:8\n#{c}\n{place}:5\n/gone.py:1\n{place}:1",
        encoding="utf-8",
    )
    # Tests of others, which a test runs, count for it.
    (lines / "2").write_text(f"#{b}\n{place}:5\n#test_x.py::test_y\n{place}:6\n", encoding="utf-8")
    reports = tmp_path / "reports" / "project"
    reports.mkdir(parents=True)
    ran = (
        {"name": a, "outcome": "passed", "seconds": 2.0},
        {"name": b, "outcome": "passed", "seconds": 7.0, "is_slow": True},
        {"name": c, "outcome": "failed", "seconds": 1.0},
    )
    (reports / "project.jsonl").write_text("\n".join(map(json.dumps, ran)), encoding="utf-8")
    write(read(lines, root), root, reported(reports), tmp_path / "index")
    # The file has another folder by now.
    (root / "tests/tools").mkdir()
    (root / "tests/project/test_faults.py").rename(root / "tests/tools/test_faults.py")
    return Index(tmp_path / "index", root)


def test_the_tests_of_lines_are_read(index: Index) -> None:
    path = "server/jaxsight/box/module.py"
    a, b = Case(A, 2.0, False), Case(B, 7.0, True)
    assert index.executed(path) == {1: False, 4: False, 5: True, 6: True, 8: False}
    assert index.executed("server/jaxsight/gone.py") == {}
    assert index.tests(path, [5]) == ([a, b], [])
    # The process of `test_b` may have outlived it.
    assert index.tests(path, [6]) == ([b], [a])
    assert index.all() == [a, b]


def test_faults_are_drawn_of_executed_lines(tmp_path: Path, index: Index) -> None:
    drawn = draw(tmp_path / "root", index, seed=1, count=4)
    assert len(drawn) == len({fault.line for fault in drawn}) > 1
    assert {fault.kind for fault in drawn} <= {*KINDS}
    assert all(index.tests(fault.file, fault.lines)[0] for fault in drawn)
    assert draw(tmp_path / "root", index, seed=1, count=4) == drawn


def test_none_is_drawn_of_a_file_that_differs_from_the_recorded_one(
    tmp_path: Path, index: Index
) -> None:
    file = tmp_path / "root/server/jaxsight/box/module.py"
    file.write_text(f"{MODULE}\n", encoding="utf-8")
    assert draw(tmp_path / "root", index, seed=1, count=4) == []


def test_each_function_has_its_turn_before_cases_of_one() -> None:
    cases = [Case(f"tests/a.py::test_a[{n}]", 1) for n in range(5)]
    other, late = Case("tests/b.py::test_b", 3), Case("tests/c.py::test_c", 90)
    assert chosen([[*cases, other], [late]], Limits(4, 6)) == [*cases[:3], other]


class Fake(Scratch):
    """Runs no tests: those of a set fail, with a fault or without."""

    def __init__(self, tree: Path, finding: set[str], flaky: set[str]) -> None:
        super().__init__(tree)
        self.finding, self.flaky = finding, flaky

    def run(
        self, tests: object, patience: float, limit: float, *options: str, as_gate: bool = False
    ) -> Outcome:
        assert isinstance(tests, list)
        failing = self.flaky | (self.finding if "--exitfirst" in options else set())
        failed = [test for test in tests if test in failing]
        return Outcome(failed, tests, None, False, "")


def test_all_tests_are_tried_where_those_of_the_line_find_nothing(
    tmp_path: Path, index: Index
) -> None:
    root = tmp_path / "root"
    drawn = [fault for fault in draw(root, index, seed=1, count=8) if fault.lines == (5,)][:1]
    scratch = Fake(root, set(), set())
    trial = Trial(scratch, index, lambda tests, changed: {*tests}, Limits(), Limits())
    results = Results.read(tmp_path / "results.json")
    trial.all(drawn, results)
    scratch.finding = {B}
    trial.everything(drawn, results, count=1, workers=1)
    assert (results.of[0].found_by, results.of[0].everything) == (NOTHING, B)


@pytest.mark.parametrize(
    ("finding", "flaky", "found_by"),
    [({A}, set(), GATE), ({B}, set(), LINE), (set(), set(), NOTHING), ({B}, {A}, LINE)],
)
def test_faults_are_found_by_the_gate_or_others(
    tmp_path: Path, index: Index, finding: set[str], flaky: set[str], found_by: str
) -> None:
    root = tmp_path / "root"
    drawn = [fault for fault in draw(root, index, seed=1, count=8) if fault.lines == (5,)][:1]
    trial = Trial(
        Fake(root, finding, flaky), index, lambda tests, changed: {A} & {*tests}, Limits(), Limits()
    )
    results = Results.read(tmp_path / "results.json")
    trial.all(drawn, results)
    assert results.of[0].found_by == found_by
    assert results.flaky == flaky
    assert Results.read(tmp_path / "results.json") == results
    found = {GATE: "1 of 1", LINE: "0 of 1", NOTHING: "0 of 0"}[found_by]
    assert table(drawn, results).endswith(
        f"gate finds {found} that the tests of their line find (1 faults)"
    )
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["flaky"] == [*flaky]
    assert (root / drawn[0].file).read_text(encoding="utf-8") == MODULE
