"""All code that starts a process: how it keeps a workspace out (see `workers/own_python.py`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "server" / "jaxsight"

STARTS = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput"},
    "os": {"execv", "execve", "execvp", "execvpe", "execl", "spawnv", "system", "popen", "posix_spawn"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
}  # fmt: skip
OF_A_LOOP = {"subprocess_exec", "subprocess_shell"}

ALLOWED = {
    "cli/agents/tools.py": "with_packages",
    "cli/boot_process.py": "by the path of `boot.py`, in the user's folder",
    "cli/checking/recompilations.py": "the user's tests",
    "cli/commands/dataset.py": "with_packages",
    "cli/git.py": "program",
    "cli/resident/client.py": "resident",
    "dataset/making/worker_process.py": "with_packages",
    "recording/running.py": "the user's program",
    "repro/capturing/more_devices.py": "this process again, with its own arguments",
    "repro/compat/configuration.py": "with_packages",
    "repro/context.py": "by the path of `boot.py`, in the user's folder",
    "repro/explaining/targets.py": "program",
    "repro/reducing/statements/reduction.py": "the user's check",
    "repro/running.py": "guarded",
    "repro/watched_process.py": "guarded",
    "workers/compilation/direct.py": "compiler_python",
    "workers/compilation/installation.py": "isolated",
    "workers/process.py": "guarded",
    "workers/program_files.py": "with_packages",
    "workers/watchdog/guardian.py": "what it is told to guard",
}
"""How each of them is started. A name is of a function that the module calls."""


def starts(file: Path) -> Iterator[str]:
    """What in a module starts a process."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if (
                name in STARTS.get(module, ())
            ):
                yield f"{module}.{name}"
            case ast.Call(func=ast.Attribute(attr=name)) if name in OF_A_LOOP:
                yield name


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_processes_are_started_where_that_is_known() -> None:
    found = {str(file.relative_to(PACKAGE)) for file in modules() if list(starts(file))}
    assert found - ALLOWED.keys() == set(), "start it as `workers/own_python.py` says"
    assert ALLOWED.keys() - found == set(), "these start nothing any more"
    for name, how in ALLOWED.items():
        if how.isidentifier():
            text = (PACKAGE / name).read_text(encoding="utf-8")
            assert f"{how}(" in text, f"{name} does not call {how}"


def test_no_code_is_run_by_name_but_through_these_functions() -> None:
    """`python -m` and `python -c` import from the working folder unless an option forbids it."""
    allowed = {
        "cli/checking/recompilations.py": "the user's tests",
        "recording/program.py": "reads the user's command",
        "repro/explaining/intermediates.py": "drops the folder first",
        "repro/explaining/targets.py": "drops the folder first",
        "repro/running.py": "drops the folder first",
        "workers/compilation/remote.py": "drops the folder first",
        "workers/own_python.py": "with `-P`, at the root",
    }
    for file in modules():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        lists = [node for node in ast.walk(tree) if isinstance(node, ast.List)]
        by_name = [
            element.value
            for each in lists
            for element in each.elts
            if isinstance(element, ast.Constant) and element.value in ("-m", "-c")
        ]
        name = str(file.relative_to(PACKAGE))
        assert not by_name or name in allowed or name == "cli/git.py", name
