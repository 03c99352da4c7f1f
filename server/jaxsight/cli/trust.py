"""`jaxsight trust`: the user's decisions about folders, seen and changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.given import reachable
from jaxsight.cli.printing import Printer
from jaxsight.engine.trust import Decisions, Store, store_file
from jaxsight.engine.trust.store import upward
from jaxsight.engine.trust.words import shown_path


def trust(path: Path, *, listing: bool, forget: bool, allow: Sequence[str]) -> int:
    """Trust a folder, let it reach something, take either back, or list all; the exit status.

    Args:
        path: the folder.
        listing: print all decisions instead.
        forget: take back what would be decided.
        allow: what the folder may reach; then its trust stays as it is.

    Raises:
        CommandError: there is no such folder, or nothing can be kept.
    """
    store = Store(store_file())
    printer = Printer()
    if listing:
        _list(printer, store)
        return 0
    if not path.is_dir():
        raise CommandError(f"there is no folder {shown_path(str(path))}")
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
        verb = "may no longer reach" if forget else "may reach"
        printer.print(f"{shown} {verb} {shown_path(what)}")
    if not whats:
        printer.print(f"{shown} is {'no longer trusted' if forget else 'trusted'}")
    above = [each for each in upward(folder) if each in store.read().folders and each != folder]
    if forget and above and not whats:
        printer.print(f"note: it is still trusted because of {shown_path(above[0])}")
    return 0


def _list(printer: Printer, store: Store) -> None:
    known = store.read()
    if store.problem:
        Printer(stderr=True).print(f"note: {store.file} is ignored: {store.problem}")
    for folder in sorted(known.folders):
        printer.print(f"{shown_path(folder)} is trusted")
    for folder, what in sorted(known.approvals):
        printer.print(f"{shown_path(folder)} may reach {shown_path(what)}")
    if not known.folders and not known.approvals:
        printer.print("no folder is trusted")


def _why(store: Store) -> str:
    if store.file is None:
        return "cannot keep the decision: there is no home folder"
    return f"cannot keep the decision in {store.file}: {store.problem or 'it cannot be written'}"
