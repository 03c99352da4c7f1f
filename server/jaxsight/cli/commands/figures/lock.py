"""Write what functions compile to: `jaxsight lock PATH…`."""

from __future__ import annotations

from pathlib import Path

from jaxsight.cli.checking.file_check import INPUTS_TIME, Budget
from jaxsight.cli.checking.locked import LockFiles
from jaxsight.cli.command_run import start_run
from jaxsight.cli.errors import NOTHING_EXAMINED, failing_on
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer, print_note
from jaxsight.cli.parameters import Allow, LockTargets, Python
from jaxsight.cli.sources.arguments import texts
from jaxsight.features.findings.locked import LockedFile, lockable
from jaxsight.text.inert import one_line
from jaxsight.text.units import count
from jaxsight.trust.decisions import path_text


@command
async def lock(
    paths: list[Path] | None = None,
    *,
    targets: LockTargets = None,
    python: Python = None,
    allow: Allow = None,
) -> int:
    """Write what functions compile to into jaxsight.lock, in the project's root.

    It has a line for each function with written or recorded inputs, for each that the file's own
    program compiles, and for each target: kernels, launches, memory, collectives and types.
    Compare with [cyan]jaxsight check --locked[/cyan]. Lines of other files, targets and versions
    of JAX stay.

    Exits with 0, with 2 if it fails, and with 3 if there are no functions to lock.

    [bold]Examples[/bold]

        jaxsight lock
        jaxsight lock src/model.py --target cpu --target cuda:h100

    Args:
        paths (PATH): Files or folders to lock. [default: .]
    """
    paths = paths or [Path()]
    files = list(texts(paths, None))
    errors = Printer(stderr=True)
    async with start_run(paths, python, allow, targets=targets or ()) as run:
        locks = LockFiles(run.session.engine.projects, chosen=targets or ())
        found: list[LockedFile] = []
        budget = Budget(INPUTS_TIME, len(files))
        for path in map(str, run.opened(files)):
            budget.spend(await run.get(run.session.background.settle(path, patience=budget.share)))
            budget.files -= 1
            with failing_on(LookupError):
                compiling = lockable(run.session.engine, path, locks.targets(path))
                functions = await run.get(compiling)
            found.append(LockedFile(path, tuple(functions)))
        functions_of = [(each.path, function) for each in found for function in each.functions]
        for path, function in functions_of:
            if function.facts is None:
                name, on = locks.name(path, function.name), function.section.target
                print_note(errors, f"note: {one_line(f'{name} on {on}: {function.problem}')}")
        number = sum(function.facts is not None for _, function in functions_of)
        if not number:
            errors.print("no functions to lock: none has written, recorded or observed inputs")
            return NOTHING_EXAMINED
        changed = list(locks.update(found))
    for written in changed:
        Printer().print(f"Wrote {one_line(path_text(str(written)))} ({count(number, 'line')}).")
    if not changed:
        Printer().print(f"jaxsight.lock is up to date ({count(number, 'line')}).")
    return 0
