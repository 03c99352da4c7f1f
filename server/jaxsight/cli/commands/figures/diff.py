"""Compare what functions compile to with a git revision: `jaxsight diff BASE PATH…`."""

from __future__ import annotations

import os
from pathlib import Path

from jaxsight.cli.command_run import start_run
from jaxsight.cli.errors import FOUND, NOTHING_EXAMINED
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import (
    Printer,
    print_document,
    print_json,
    without_commands,
)
from jaxsight.cli.parameters import Allow, AsJson, LockTargets, Python
from jaxsight.cli.revisions.report import RevisionReport, changes
from jaxsight.cli.revisions.sides import ProgramSide, compiled_side, python_texts
from jaxsight.cli.revisions.tree import revision_tree
from jaxsight.cli.user_python import process_variable
from jaxsight.files import reading


@command
async def diff(
    base: str,
    paths: list[Path] | None = None,
    *,
    targets: LockTargets = None,
    python: Python = None,
    allow: Allow = None,
    as_json: AsJson = False,
    as_markdown: bool = False,
    verbose: bool = False,
) -> int:
    """Show which functions compile to something else than in a git revision, and why.

    The functions of Python files with written or recorded inputs, and those that a file's own
    program compiles, are traced and compiled as they are in the revision and as they are now,
    with the same interpreter; none is run.

    Exits with 0 if nothing is worse, with 1 if something is, with 2 if the comparison fails, and
    with 3 if there are no functions to compare.

    [bold]Examples[/bold]

        jaxsight diff HEAD
        jaxsight diff main... src --target cuda:h100
        jaxsight diff main --markdown

    Args:
        base (BASE): Git revision to compare with, such as [cyan]HEAD[/cyan] or [cyan]main[/cyan];
            with [cyan]...[/cyan] after it, the commit where it and HEAD parted.
        paths (PATH): Files or folders to compare. [default: .]
        as_markdown (--markdown): Print a table for a comment on a pull request.
        verbose (--verbose -v): List functions that are no better or worse, too.
    """
    paths = paths or [Path()]
    where = paths[0].absolute()
    tree = revision_tree(where if where.is_dir() else where.parent, base)
    then = [path for path in map(tree.then, paths) if reading.exists(path)]
    # What is trusted there is what is trusted here: the working folder with what is below it.
    here = Path.cwd()
    is_below = all(path.absolute().is_relative_to(here) for path in paths)
    roots = [tree.then(here)] if is_below and here.is_relative_to(tree.top) else then

    async with start_run(paths, python, allow, targets=targets or ()) as run:
        files = python_texts(paths)
        after = await compiled_side(run, files, targets or (), tree.top)
    before = ProgramSide(tree.folder)
    if then:
        known = python or after.python or None
        search_path = tree.search_path(os.environ.get("PYTHONPATH", ""), after.python)
        with process_variable("PYTHONPATH", search_path):
            chosen, noted = targets or after.targets, after.python
            async with start_run(roots, known, allow, targets=targets or (), noted=noted) as run:
                files = python_texts(then)
                before = await compiled_side(run, files, chosen, tree.folder)
    report = RevisionReport(base, tree.commit, changes(before, after))
    if as_json:
        print_json(report.record())
    elif as_markdown:
        print_document(without_commands(report.as_markdown()))
    else:
        report.print(Printer(), verbose=verbose)
    if not report.changes:
        return NOTHING_EXAMINED
    return FOUND if report.worse else 0
