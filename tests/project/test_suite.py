"""What the gate and the parts hold, what they write down, and what they make of a test that dies."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.searches import SENTINELS, VARIABLE, part
from tools.suite import digests, durations, parts, running
from tools.suite.__main__ import jobs_of
from tools.suite.digests import Tree, files, folders, touched
from tools.suite.environments import Installation
from tools.suite.ownership import EVERYTHING, owners
from tools.suite.parts import NEWEST, PARTS, ROOT
from tools.suite.reruns import MOST, rerun
from tools.suite.results import Case, by_folder, line, of_pytest
from tools.suite.running import Job, Outcome, Run, chunks
from tools.suite.selection import Gate, Near, Traits

FOLDERS = folders()
ON_ALL = (
    "pyproject.toml",
    "requirements/test-py312.in",
    "requirements/test-py312.txt",
    "tests/conftest.py",
    "tests/hostile.py",
    "tests/marks.py",
    "tests/quiet.py",
    "tests/searches.py",
    "tests/sessions.py",
    "tests/terminal.py",
)
"""The files that all tests depend on."""


def test_every_tracked_path_is_known() -> None:
    unknown = {path for path in files() if EVERYTHING in owners(path, FOLDERS)}
    assert unknown == {*ON_ALL}


def test_every_tracked_path_of_a_program_has_tests() -> None:
    programs = ("server/", "vscode-extension/", "neovim/", "action", "examples/", "tools/")
    untested = [
        path
        for path in files()
        if path.startswith(programs) and not owners(path, FOLDERS) & {*parts.tested()}
    ]
    assert untested == []


@pytest.mark.parametrize(
    ("path", "owned_by"),
    [
        ("server/jaxsight/rules/rule.py", {"rules"}),
        ("server/jaxsight/lru.py", {"features", "lru"}),
        ("tests/rules/test_rules.py", {"rules"}),
        ("tests/corpora/truth/loops.txt", {"truth"}),
        ("tests/corpora/nobody/loops.txt", {EVERYTHING}),
        ("tests/new_helper.py", {EVERYTHING}),
        ("vscode-extension/src/extension.ts", {"project", "vscode"}),
        ("neovim/lua/jaxsight/init.lua", {"editors", "project", "vscode"}),
        ("action/install.sh", {"project"}),
        ("LICENSE", set()),
        ("a-new-editor/plugin.json", {EVERYTHING}),
    ],
)
def test_a_path_belongs_to_packages(path: str, owned_by: set[str]) -> None:
    assert owners(path, FOLDERS) == owned_by


def test_every_file_of_tests_is_in_one_part() -> None:
    every = {each.relative_to(ROOT).as_posix() for each in (ROOT / "tests").rglob("test_*.py")}
    environments = (
        NEWEST,
        parts.NOTEBOOKS,
        parts.TABLES,
        parts.MINED,
        parts.UNPREPARED,
        parts.VSCODE,
    )
    held = Counter(
        file for each in PARTS if each.environment in environments for file in parts.files(each)
    )
    assert {file: held[file] for file in every if held[file] != 1} == {}


@pytest.mark.parametrize("each", PARTS, ids=lambda each: each.name)
def test_what_a_part_names_is_there(each: parts.Part) -> None:
    for path in each.paths:
        assert (ROOT / "tests" / path.partition("::")[0]).exists()


@pytest.mark.parametrize(
    ("test", "held"),
    [
        (Traits("tests/cli/test_a.py"), True),
        (Traits("tests/cli/test_a.py", is_slow=True), False),
        (Traits("tests/rules/test_a.py", is_slow=True), True),
        (Traits("tests/cli/test_a.py", is_slow=True, is_search=True), True),
        (Traits("tests/cli/test_a.py", is_slow=True, is_smoke=True), True),
    ],
)
def test_the_gate_holds(test: Traits, held: bool) -> None:
    assert Gate(frozenset({"rules"})).holds(test) is held


@pytest.mark.parametrize(
    ("path", "is_slow", "held"),
    [
        ("tests/rules/test_a.py", True, True),
        ("tests/features/test_a.py", False, True),
        ("tests/features/test_a.py", True, False),
        ("tests/text/test_a.py", False, False),
    ],
)
def test_near_a_change_are_its_packages_and_those_that_import_them(
    path: str, is_slow: bool, held: bool
) -> None:
    near = Near(frozenset({"rules"}), frozenset({"features"}))
    assert near.holds(Traits(path, is_slow)) is held


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with two packages and their tests."""
    for path in (
        "pyproject.toml",
        "server/jaxsight/rules/rule.py",
        "server/jaxsight/features/hover.py",
        "tests/conftest.py",
        "tests/rules/test_rule.py",
        "tests/features/test_hover.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("[tool]\nhatch = 1\npytest = 1\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    tree = Tree(tmp_path)
    rows = {name: tree.row(name) for name in ("rules", "features")}
    digests.write("some", rows, tmp_path / "tests" / "passed.json")
    return tmp_path


TESTED = {"rules": ("some",), "features": ("some",)}


@pytest.mark.parametrize(
    ("path", "own", "imports"),
    [
        ("tests/passed.json", set(), set()),
        ("LICENSE", set(), set()),
        # `features` imports `rules`.
        ("server/jaxsight/rules/rule.py", {"rules"}, {"features"}),
        ("server/jaxsight/rules/new.py", {"rules"}, {"features"}),
        ("tests/features/test_hover.py", {"features"}, set()),
        ("tests/conftest.py", {"rules", "features"}, set()),
        ("never-seen.cfg", {"rules", "features"}, set()),
    ],
)
def test_what_differs_from_what_passed_is_touched(
    project: Path, path: str, own: set[str], imports: set[str]
) -> None:
    file = project / path
    file.write_text(file.read_text() + "\n" if file.is_file() else "x = 1\n")
    found = touched(TESTED, project)
    assert (found.own, found.imports) == (own, imports)


def test_a_helper_touches_the_tests_that_import_it_through_others(project: Path) -> None:
    tests = project / "tests"
    (tests / "rules" / "helper.py").write_text("x = 1\n")
    (tests / "rules" / "other.py").write_text("from tests.rules.helper import x\n")
    (tests / "features" / "test_hover.py").write_text(
        "from tests.rules.other import (\n    x,\n)\n"
    )
    tree = Tree(project)
    rows = {name: tree.row(name) for name in ("rules", "features")}
    digests.write("some", rows, tests / "passed.json")
    assert touched(TESTED, project).own == set()
    (tests / "rules" / "helper.py").write_text("x = 2\n")
    assert touched(TESTED, project).own == {"rules", "features"}


def test_a_package_passed_with_all_of_its_parts(project: Path) -> None:
    assert touched({"rules": ("some", "other")}, project).own == {"rules"}


def test_checks_of_the_code_touch_no_test(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool]\nhatch = 1\npytest = 1\nruff = 1\n")
    assert touched(TESTED, project).own == set()
    (project / "pyproject.toml").write_text("[tool]\nhatch = 1\npytest = 2\n")
    assert touched(TESTED, project).own == {"rules", "features"}


def test_a_package_that_never_passed_is_touched(project: Path) -> None:
    (project / "tests" / "passed.json").unlink()
    assert touched(TESTED, project).own == {"rules", "features"}


@pytest.mark.parametrize("count", [1, SENTINELS, 11, 412])
def test_the_gate_holds_ten_cases_of_a_search(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setenv(VARIABLE, "sentinels")
    held = part(range(count))
    assert len({*held}) == len(held) == min(count, SENTINELS)
    monkeypatch.setenv(VARIABLE, "all")
    assert part(range(count)) == [*range(count)]
    monkeypatch.delenv(VARIABLE)
    assert part(range(count)) == [*range(count)]


DIES = """\
import os, signal, pytest

def test_before(): pass

{decorator}
def test_dies(): {dies}

def test_after(): pass

def test_fails(): assert False

@pytest.mark.skip
def test_not_here(): pass
"""


def outcome_of(folder: Path, text: str) -> Outcome:
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = Path(sys.prefix).name
    job = Job("some", environment, (str(folder / "test_it.py"),))
    installed = Installation((), folder / "install.log")
    (outcome,) = Run([job], installed, {}, folder, workers=1).finish()
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    "dies",
    ["os._exit(0)", "os._exit(1)", "os.kill(os.getpid(), signal.SIGKILL)"],
)
def test_a_test_that_ends_its_process_has_failed_and_the_others_run(
    tmp_path: Path, dies: str
) -> None:
    outcome = outcome_of(tmp_path, DIES.format(dies=dies, decorator=""))
    assert {case.name.rpartition("::")[2]: case.outcome for case in outcome.cases} == {
        "test_before": "passed",
        "test_dies": "failed",
        "test_after": "passed",
        "test_fails": "failed",
        "test_not_here": "skipped",
    }
    assert outcome.is_bad


def test_the_last_test_that_ends_its_process_has_failed_once(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "import os\ndef test_a(): pass\ndef test_b(): os._exit(3)\n")
    assert [case.outcome for case in outcome.cases] == ["passed", "failed"]
    assert outcome.fault == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "import os\nos._exit(0)\n",
        "import pytest\npytest.exit('enough', returncode=0)\n",
        "import pytest\ndef test_a(): pytest.exit('enough', returncode=0)\ndef test_b(): pass\n",
    ],
)
def test_a_process_that_ends_early_without_an_error_is_bad(tmp_path: Path, text: str) -> None:
    assert outcome_of(tmp_path, text).is_bad


def rerun_of(folder: Path, text: str) -> Outcome:
    outcome = outcome_of(folder, text)
    installed = Installation((), folder / "install.log")

    def finish(jobs: list[Job]) -> list[Outcome]:
        # Names of cases are relative to the root of their project, which is not this one here.
        inside = [replace(j, files=tuple(f"{folder}/{name}" for name in j.files)) for j in jobs]
        return Run(inside, installed, {}, folder, workers=1).finish()

    rerun([outcome], finish)
    return outcome


def test_what_passes_by_itself_has_not_failed(tmp_path: Path) -> None:
    text = f"""\
from pathlib import Path

def test_passes(): pass

def test_fails_once():
    before = Path({str(tmp_path)!r}, "before")
    if not before.exists():
        before.touch()
        assert False

def test_fails(): assert False
"""
    outcome = rerun_of(tmp_path, text)
    assert [case.outcome for case in outcome.cases] == ["passed", "rerun", "failed"]
    assert outcome.is_bad
    assert line(outcome.cases, 1.0) == "1 failed, 1 passed, 1 rerun in 1.00s"


def test_what_many_tests_fail_of_is_no_busy_machine(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.parametrize('n', range({n}))\ndef test(n): assert False\n"
    outcome = outcome_of(tmp_path, text.format(n=MOST + 1))
    rerun([outcome], lambda jobs: pytest.fail(f"{jobs} were run again"))
    assert outcome.is_bad


def test_a_job_that_cannot_be_started_has_a_fault(tmp_path: Path) -> None:
    job = Job("some", "no-such-environment", ())
    installed = Installation((), tmp_path / "install.log")
    (outcome,) = Run([job], installed, {}, tmp_path, workers=1).finish()
    assert "could not be run" in outcome.fault


def test_a_row_that_was_cut_is_no_case(tmp_path: Path) -> None:
    log = tmp_path / "some.jsonl"
    whole = '{"name": "tests/a/test_a.py::test_a", "outcome": "passed", "seconds": 1.0}'
    log.write_text(f'{whole}\n{{"name": "tests/a/te\n{whole}\n')
    assert len(of_pytest(log)) == 2


def test_a_file_that_cannot_be_collected_has_failed(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "import nothing_of_this_name\n")
    assert outcome.is_bad


def test_jobs_hold_each_file_once_and_measuring_ones_apart() -> None:
    files = parts.files(next(each for each in PARTS if each.name == "tracer"))
    jobs = [*chunks("tracer", NEWEST, files, (), lambda _: running.CHUNK / 3)]
    shared = [file for job in jobs if not job.is_alone for file in job.files]
    assert shared == files
    (alone,) = (job for job in jobs if job.is_alone)
    assert "tests/tracer/isolation/test_memory.py" in alone.files
    assert all(len(job.files) <= 3 for job in jobs if not job.is_alone)


@pytest.mark.parametrize("each", [each for each in PARTS if each.is_quick], ids=lambda e: e.name)
def test_a_quick_part_leaves_slow_tests_out(each: parts.Part) -> None:
    for job in jobs_of(each):
        last = len(job.options) - 1 - job.options[::-1].index("-m")  # the one that pytest reads
        assert job.options[last + 1] == "not slow and not alone"


def test_durations_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = "tests/project/test_suite.py"
    (tmp_path / "tests" / "project").mkdir(parents=True)
    (tmp_path / file).touch()
    written = tmp_path / "tests" / "durations.json"
    durations.update(
        NEWEST,
        [
            Case(f"{file}::test_a", "passed", 0.25),
            Case(f"{file}::test_b[1]", "passed", 7.5, is_slow=True),
            Case("tests/project/test_gone.py::test_c", "passed", 1.5),
        ],
        written,
    )
    times = durations.read(written)[NEWEST]
    assert [*times] == [file]
    assert (times[file].cases, times[file].seconds) == (2, 7.8)
    assert times[file].quick == pytest.approx(0.3)
    assert times[file].long == {"test_b[1]": 7.5}


def test_tables_and_the_line_of_pytest() -> None:
    cases = [
        Case("tests/cli/test_a.py::test_b[1/2]", "passed", 7.0),
        Case("tests/cli/test_a.py::test_c", "skipped", 5.0),
        Case("panel::draws", "failed", 0.5),
    ]
    assert [*by_folder(cases)] == [
        "folder          seconds   cases",
        "cli                  12       2",
        "panel                 0       1",
    ]
    assert line(cases, 12.5) == "1 failed, 1 passed, 1 skipped in 12.50s"
    assert line([], 0.1) == "no tests ran in 0.10s"
