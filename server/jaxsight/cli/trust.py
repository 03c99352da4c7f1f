"""List and change the user's decisions about folders: `jaxsight trust`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.given import reachable
from jaxsight.cli.printing import Printer
from jaxsight.trust import Decisions, Store, store_file
from jaxsight.trust.store import upward
from jaxsight.trust.words import shown_path


def trust(path: Path, *, listing: bool, forget: bool, allow: Sequence[str]) -> int:
    """Change or list decisions about a folder and return the exit status.

    Args:
        path: the folder.
        listing: print all decisions instead.
        forget: revoke the decision instead.
        allow: hosts and interpreters that the folder may use; its trust is unchanged then.

    Raises:
        CommandError: the folder does not exist, or the decision cannot be stored.
    """
    store = Store(store_file())
    printer = Printer()
    if listing:
        _list(printer, store)
        return 0
    if not path.is_dir():
        raise CommandError(f"no such folder: {shown_path(str(path))}")
    folder = os.path.realpath(path)
    whats = [reachable(each) for each in allow]

    def edit(known: Decisions) -> Decisions:
        if not whats:
            if not forget:
                return replace(known, folders=known.folders | {folder})
            kept = {each for each in known.approvals if each[0] != folder}
            return Decisions(known.folders - {folder}, frozenset(kept))
        named = {(folder, what) for what in whats}
        changed = known.approvals - named if forget else known.approvals | named
        return replace(known, approvals=changed)

    if not store.change(edit):
        raise CommandError(_why(store))
    shown = shown_path(folder)
    for what in whats:
        verb = "may no longer use" if forget else "may use"
        printer.print(f"{shown} {verb} {shown_path(what)}")
    if not whats:
        printer.print(f"{shown} is {'no longer trusted' if forget else 'trusted'}")
    above = [each for each in upward(folder) if each in store.read().folders and each != folder]
    if forget and above and not whats:
        printer.print(f"note: still trusted as part of {shown_path(above[0])}")
    return 0


def _list(printer: Printer, store: Store) -> None:
    known = store.read()
    if store.problem:
        Printer(stderr=True).print(f"note: {store.file} ignored: {store.problem}")
    for folder in sorted(known.folders):
        printer.print(f"{shown_path(folder)} is trusted")
    for folder, what in sorted(known.approvals):
        printer.print(f"{shown_path(folder)} may use {shown_path(what)}")
    if not known.folders and not known.approvals:
        printer.print("no folder is trusted")


def _why(store: Store) -> str:
    if store.file is None:
        return "cannot store the decision: no home folder"
    return f"cannot store the decision in {store.file}: {store.problem or 'write failed'}"
