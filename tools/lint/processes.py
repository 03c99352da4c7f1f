"""All code that starts a process keeps a workspace out (see `workers/own_python.py`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Module, Offender, inside, outside

STARTS = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput"},
    "os": {
        *("execv", "execve", "execvp", "execvpe", "execl", "spawnv", "system", "popen"),
        "posix_spawn",
    },
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
}
OF_A_LOOP = {"subprocess_exec", "subprocess_shell"}

ALLOWED = {
    "cli/checking/recompilations.py": "the user's tests",
    "cli/git.py": "program",
    "cli/resident/client.py": "resident",
    "recording/running.py": "the user's program",
    "jaxsight_repro/cli/processes.py": "by the path of `boot.py`, in the user's folder",
    "jaxsight_repro/capturing/run.py": "this process again, with its own arguments",
    "jaxsight_repro/processes.py": "by the path of `boot.py`, in the user's folder",
    "jaxsight_repro/reducing/statements/reduction.py": "the user's check",
    "workers/child.py": "an `OwnPython`",
    "workers/compilation/installation.py": "isolated",
    "workers/process.py": "guarded",
    "workers/confinement/launch.py": "what it is told to become",
    "workers/watchdog/guardian.py": "what it is told to guard",
    "workers/watchdog/watched.py": "guarded",
}
"""How each of them is started. A name is of a function that the module calls."""
BY_NAME = {
    "cli/git.py": "its options are those of git",
    "cli/checking/recompilations.py": "the user's tests",
    "recording/running.py": "reads the user's command",
    "jaxsight_repro/running.py": "drops the folder first",
    "workers/compilation/remote.py": "drops the folder first",
    "workers/own_python.py": "with `-P`, at the root",
}
"""`python -m` and `python -c` import from the working folder unless an option forbids it."""


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield what starts a process in another place or another way, and stale permissions."""
    needed = set[str]()
    for module in checkout.modules:
        name = inside(module.path)
        for line, how in starts(module):
            needed.add(name)
            if name not in ALLOWED:
                message = f"{how}: start a process as `workers/own_python.py` says"
                yield Offender(module.path, line, message)
        function = ALLOWED.get(name, "")
        if function.isidentifier() and f"{function}(" not in module.text:
            yield Offender(module.path, 1, f"starts processes, but not with `{function}`")
        for each in module.nodes(ast.List):
            for element in each.elts:
                match element:
                    case ast.Constant(value="-m" | "-c" as option) if name not in BY_NAME:
                        message = f"runs code by name (`python {option}`): use `with_packages`"
                        yield Offender(module.path, element.lineno, message)
    for name in ALLOWED.keys() - needed:
        message = "starts nothing, and needs no permission in `tools/lint/processes.py`"
        yield Offender(outside(name), 1, message)


def starts(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of what starts a process."""
    for call in module.nodes(ast.Call):
        match call.func:
            case ast.Attribute(value=ast.Name(id=origin), attr=name) if name in STARTS.get(
                origin, ()
            ):
                yield call.lineno, f"{origin}.{name}"
            case ast.Attribute(attr=name) if name in OF_A_LOOP:
                yield call.lineno, name
