"""What there is to run and where: the parts of `make test-all`, and the smoke runs of the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

NEWEST = "test-py312"
"""The environment with the newest JAX, on Python 3.12 or 3.13."""
OLDER = "test-py311"
"""Python 3.11 and JAX 0.10."""
OLDEST = "oldest"
"""Python 3.11 and the oldest JAX that traces."""
PYTHON_314 = "test-py314"
NOTEBOOKS = "notebooks"
TABLES = "dataset"
"""Has the libraries that read the tables of datasets."""
UNPREPARED = "unprepared"
"""Has the libraries whose files are opened, with what their tests import."""
MINED = "mined"
"""Has many libraries that use JAX."""
VSCODE = "vscode"
"""Has Playwright, and no JAX."""
PANEL = "panel"
"""Is node, not Python."""


@dataclass(frozen=True)
class Part:
    """A part of all tests."""

    name: str
    what: str
    """What it tests, in a few words, for `make test-all PART=help`."""
    paths: tuple[str, ...]
    """Folders and files below `tests/`; what a part names more exactly, another one leaves out."""
    environment: str = NEWEST
    without: tuple[str, ...] = ()
    """Files below `paths` that it leaves out."""
    is_quick: bool = False
    """Whether slow tests are left out, as another environment runs them."""


PARTS = (
    Part(
        "cli",
        "the terminal's commands, trust, locks and sweeps",
        ("cli", "locks", "sweeps", "trust"),
    ),
    Part(
        "dataset",
        "generated and mined programs, their tasks",
        ("jaxsight_dataset", "size_names"),
    ),
    Part(
        "editors",
        "Neovim and Emacs, recorded sessions of all editors",
        ("e2e", "editors", "lsp"),
    ),
    Part(
        "features",
        "hovers, hints, actions, fixes",
        ("examples", "features", "proposals"),
    ),
    Part(
        "programs",
        "everything that compiles: kernels, estimates, targets, measured times",
        (
            "compiler",
            "device",
            "drawing",
            "figures",
            "measuring",
            "page",
            "profiles",
            "targets",
        ),
    ),
    Part(
        "project",
        "the tests of how this project is built and documented, of its files and text",
        (
            "agents",
            "docs",
            "files",
            "library",
            "notebooks",
            "project",
            "reading",
            "settings",
            "source",
            "text",
        ),
    ),
    Part(
        "repro",
        "captured, reduced and recorded programs",
        ("precision", "jaxsight_repro", "recording", "runs"),
    ),
    Part("rules", "each rule's cases, pages and errors", ("rules",)),
    Part("sourcerizer", "programs as source, inverses", ("jaxsight_source",)),
    Part("tracer", "tracers, workers and projects", ("projects", "tracer", "workers")),
    Part("meshes", "search: programs over several devices", ("meshes",)),
    Part(
        "truth",
        "search: small modules, edits and sessions",
        ("features/test_random_edits.py", "truth"),
    ),
    Part("fuzz", "search: hostile bytes, messages and kills", ("fuzz",)),
    Part(
        "hard-programs",
        "search: difficult programs as source",
        ("jaxsight_source/test_hard_programs.py",),
    ),
    Part(
        "harnesses",
        "search: JAX's primitive harnesses as source",
        ("jaxsight_source/test_harnesses.py", "jaxsight_source/test_programs_given.py"),
    ),
    Part(
        "libraries",
        "search: functions of libraries as source",
        ("jaxsight_source/test_libraries.py",),
    ),
    Part(
        "drivers",
        "functions as the drivers of libraries call them",
        ("drivers",),
        without=("drivers/test_blackjax.py",),
    ),
    Part("blackjax", "the same of BlackJAX", ("drivers/test_blackjax.py",), MINED),
    # Python 3.11 and JAX 0.10: what private API of JAX, its messages and its jaxprs can break.
    Part(
        "older-jax-commands",
        "on JAX 0.10: commands, compilers, recordings, captured programs",
        (
            "cli",
            "compiler/distributed/test_collectives.py",
            "compiler/test_absent_gpus.py",
            "compiler/test_api.py",
            "compiler/test_compilers.py",
            "compiler/test_reach.py",
            "compiler/test_tiers.py",
            "measuring",
            "recording",
            "jaxsight_repro/test_call_tree.py",
            "jaxsight_repro/test_call_tree_errors.py",
            "jaxsight_repro/test_capture.py",
        ),
        OLDER,
    ),
    Part(
        "older-jax-features",
        "on JAX 0.10: hovers, hints, fixes, rules",
        ("features", "rules/test_cases.py"),
        OLDER,
    ),
    Part(
        "older-jax-source",
        "on JAX 0.10: programs as source, inverses",
        ("jaxsight_source",),
        OLDER,
        # Libraries take as long as all else, and are written by the same rules.
        without=("jaxsight_source/test_libraries.py",),
    ),
    Part(
        "older-jax-tracer",
        "on JAX 0.10: tracers, projects, small modules",
        ("projects", "tracer/dry_runs", "tracer/handlers", "tracer/isolation", "truth"),
        OLDER,
    ),
    Part(
        "oldest-jax",
        "Python 3.11 and the oldest JAX: the tracer, programs as source, call trees",
        (
            "jaxsight_repro/test_call_tree.py",
            "jaxsight_repro/test_call_tree_errors.py",
            "jaxsight_source/test_hard_programs.py",
            "jaxsight_source/test_harnesses.py",
            "jaxsight_source/test_programs.py",
            "tracer/handlers",
            "tracer/isolation",
        ),
        OLDEST,
        is_quick=True,
    ),
    Part(
        "python-3.14",
        "what a newer Python can break: syntax, bytecode, annotations, frames, processes",
        (
            "cli/test_inputs.py::test_kernels_of_assumed_inputs_say_so",
            "cli/test_notes.py",
            "files/test_reading.py",
            "library",
            "recording/test_arguments.py",
            "recording/test_runs.py",
            "source/test_slices.py",
            "jaxsight_source/test_comments.py",
            "jaxsight_source/test_random.py",
            "text/test_names.py",
            "tracer/handlers/test_trace.py",
        ),
        PYTHON_314,
        is_quick=True,
    ),
    Part("notebooks", "magics and figures in IPython", ("notebooks/ipython",), NOTEBOOKS),
    Part(
        "tables",
        "tables of datasets, with the libraries that read them",
        ("jaxsight_dataset/tables",),
        TABLES,
    ),
    Part(
        "unprepared",
        "what an editor shows of files of libraries, beside real runs",
        ("unprepared",),
        UNPREPARED,
    ),
    Part("vscode", "the packaged extension in VS Code", ("vscode",), VSCODE),
    Part("browser", "a report in a browser", ("report",), VSCODE),
    Part("panel", "the panel by itself, in node", (), PANEL),
)

SMOKE = {
    OLDEST: ("tracer/handlers/test_trace.py", "jaxsight_source/test_programs.py"),
    PYTHON_314: ("source/test_slices.py", "text/test_names.py", "tracer/handlers/test_trace.py"),
    NOTEBOOKS: ("notebooks/ipython/test_magics.py",),
    VSCODE: ("vscode/test_editing.py",),
}
"""What the gate runs in environments besides the newest one: the quick tests of these files, or, in
VS Code, those marked `smoke`, as in Neovim and Emacs, which run in the newest environment.
"""

_ELSEWHERE = ("jaxsight_dataset/tables", "notebooks/ipython", "report", "unprepared", "vscode")
"""Folders that only their own environments collect."""


def files(part: Part) -> list[str]:
    """Return the files of tests of a part, and single tests that it names."""
    others = {
        path
        for other in PARTS
        if other.environment == part.environment and other is not part
        for path in other.paths
    }
    if part.environment not in (TABLES, NOTEBOOKS, UNPREPARED, VSCODE):
        others |= {*_ELSEWHERE}
    found: list[str] = []
    for path in part.paths:
        deeper = {other for other in others if other.startswith(f"{path}/")} | {*part.without}
        found += [
            file
            for file in _below(path)
            if not any(_is_in(file, f"tests/{other}") for other in deeper)
        ]
    return found


def _below(path: str) -> Iterator[str]:
    file, _, case = path.partition("::")
    whole = ROOT / "tests" / file
    if whole.is_dir():
        for each in sorted(whole.rglob("test_*.py")):
            yield each.relative_to(ROOT).as_posix()
    elif whole.is_file():
        yield f"tests/{path}" if case else f"tests/{file}"


def _is_in(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")


def tested() -> dict[str, tuple[str, ...]]:
    """Return the parts that together have all tests of each folder, on the newest they run on."""
    parts: dict[str, tuple[str, ...]] = {}
    for part in PARTS:
        if part.environment in (NEWEST, NOTEBOOKS, TABLES, MINED, UNPREPARED, VSCODE):
            for folder in {path.partition("/")[0] for path in part.paths}:
                parts[folder] = (*parts.get(folder, ()), part.name)
    return parts


def named(names: Iterable[str]) -> list[Part]:
    """Return the parts of these names.

    Raises:
        ValueError: If there is no part of a name.
    """
    by_name = {part.name: part for part in PARTS}
    wanted = [*names]
    for name in wanted:
        if name not in by_name:
            raise ValueError(f"no part `{name}`; there are {', '.join(by_name)}")
    return [by_name[name] for name in wanted]
