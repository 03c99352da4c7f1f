"""List and change the user's decisions about folders: `jaxsight trust`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.execution import command
from jaxsight.cli.output.printing import Printer
from jaxsight.trust import Decisions, TrustStore, store_file
from jaxsight.trust.decisions import path_text, stored_form
from jaxsight.trust.store import upward
from jaxsight.workers.confinement.start import held


@command
def trust(
    path: Path | None = None,
    *,
    list_all: bool = False,
    forget: bool = False,
    allow: list[str] | None = None,
) -> int:
    """Trust a folder: allow editors to run its code and interpreters, subfolders included.

    Decisions are stored in your state folder (~/.local/state/jaxsight/trust.json).

    [bold]Examples[/bold]

        jaxsight trust
        jaxsight trust ~/work --forget
        jaxsight trust --allow ssh://cluster
        jaxsight trust --list

    Args:
        path (PATH): Folder to trust. [default: .]
        list_all (--list): List all decisions.
        forget: Revoke the decision.
        allow (ssh://HOST|PYTHON): Allow the folder's settings and docstrings to use this host, or
            this interpreter outside of the folder, without changing the trust in its code.
            Repeatable.
    """
    store = TrustStore(store_file())
    printer = Printer()
    if list_all:
        _print_decisions(printer, store)
        return 0
    path = path or Path()
    if not path.is_dir():
        raise CommandError(f"no such folder: {path_text(str(path))}")
    folder = os.path.realpath(path)
    programs = [stored_form(text) for text in allow or ()]
    if not store.change(lambda decisions: _changed(decisions, folder, programs, forget)):
        reason = f" in {store.file}: {store.problem or 'write failed'}"
        raise CommandError(
            "cannot store the decision" + (reason if store.file else ": no home folder")
        )
    shown = path_text(folder)
    for program in programs:
        verb = "may no longer use" if forget else "may use"
        printer.print(f"{shown} {verb} {path_text(program)}")
    if not programs:
        printer.print(f"{shown} is {'no longer trusted' if forget else 'trusted'}")
        if not forget:
            printer.print(f"note: {held()}")
    trusted = store.read().folders
    above = [parent for parent in upward(folder) if parent in trusted and parent != folder]
    if forget and above and not programs:
        printer.print(f"note: still trusted as part of {path_text(above[0])}")
    return 0


def _changed(decisions: Decisions, folder: str, programs: Sequence[str], forget: bool) -> Decisions:
    """Return the decisions with those about a folder added or revoked.

    Args:
        programs: hosts and interpreters that the folder may use; without any, the decision is
            about the folder's code.
    """
    if programs:
        own = {(folder, program) for program in programs}
        approvals = decisions.approvals - own if forget else decisions.approvals | own
        return replace(decisions, approvals=approvals)
    if not forget:
        return replace(decisions, folders=decisions.folders | {folder})
    approvals = frozenset(approval for approval in decisions.approvals if approval[0] != folder)
    return Decisions(decisions.folders - {folder}, approvals)


def _print_decisions(printer: Printer, store: TrustStore) -> None:
    decisions = store.read()
    if store.problem:
        Printer(stderr=True).print(f"note: {store.file} ignored: {store.problem}")
    for folder in sorted(decisions.folders):
        printer.print(f"{path_text(folder)} is trusted")
    for folder, program in sorted(decisions.approvals):
        printer.print(f"{path_text(folder)} may use {path_text(program)}")
    if not decisions.folders and not decisions.approvals:
        printer.print("no folder is trusted")
