"""Determine what a command trusts: the paths on its command line, and nothing above them.

These are the folder of each file, the working folder if the file is in it, and the project roots
between the two. Settings and environments of a folder above are used only if the user trusted that
folder before; otherwise a note is printed. Paths that an agent passes trust nothing (`AGENT`).
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files.ownership import is_own_folder
from jaxsight.files.reading import MARKERS
from jaxsight.projects.projects import SETTINGS_FILE
from jaxsight.projects.python_discovery import environments_above
from jaxsight.settings.example_settings import LIBRARIES
from jaxsight.trust import Policy, Trust, TrustStore, chosen_policy, store_file
from jaxsight.trust.decisions import path_text, stored_form

AGENT = "JAXSIGHT_AGENT"
"""In the environment of a command that an agent passes: the folders that the user trusts for it, as
JSON, besides those of the store. What the command line names is not trusted then."""


@dataclass(frozen=True, slots=True)
class TrustedPaths:
    """The folders that a command works in, their trust, and notes about the folders above."""

    roots: list[str]
    trust: Trust
    notes: list[str]
    key: object
    """Equal for paths with which the same is trusted."""


def trust_paths(paths: Iterable[Path], allow: Sequence[str] = ()) -> TrustedPaths:
    """Return what a command trusts.

    Args:
        paths: files and folders on the command line.
        allow: what projects may use: `ssh://HOST`, or an interpreter.
    """
    policy, by_user = chosen_policy(), AGENT not in os.environ
    # The user asked for the command: `never` only forbids what nobody asked for.
    if policy is not Policy.ALWAYS and (by_user or policy is not Policy.NEVER):
        policy = Policy.ASK
    store = TrustStore(store_file())
    before = Trust(policy, store, json.loads(os.environ.get(AGENT, "[]")), terminal=True)
    roots: dict[str, None] = {}
    named: set[str] = set()
    notes: dict[str, None] = {}
    for path in paths:
        root, above = _root(path, before, by_user)
        roots[str(root)] = None
        # The user named it: where links in the root lead otherwise, they did not.
        real = Path(os.path.realpath(path))
        named.add(str(real if real.is_dir() else real.parent))
        notes |= dict.fromkeys(_ignored_note(folder) for folder in above)
    allowed = [stored_form(text) for text in allow]
    trust = before
    if by_user:
        trust = Trust(policy, store, {*roots, *named}, allowed, terminal=True)
    real_roots = {os.path.realpath(root) for root in roots}
    elsewhere = {
        folder
        for folder in named
        if not any(Path(folder).is_relative_to(root) for root in real_roots)
    }
    key = policy, tuple(roots), frozenset(elsewhere), frozenset(allowed)
    return TrustedPaths(list(roots), trust, list(notes), key)


def _root(path: Path, trust: Trust, by_user: bool) -> tuple[Path, list[Path]]:
    """Return the trusted folder of a path, and folders above it that matter but are not trusted."""
    absolute = path.absolute()
    own = absolute if absolute.is_dir() else absolute.parent
    here = Path.cwd()
    root = here if own.is_relative_to(here) or not LIBRARIES.isdisjoint(own.parts) else own
    if not by_user:
        below = [folder for folder in (own, *own.parents) if folder.is_relative_to(root)]
        root = next((each for each in reversed(below) if trust.may_run(str(each))), own)
    marked = (
        folder
        for folder in (own, *own.parents)
        if any(os.path.lexists(folder / marker) for marker in MARKERS)
    )
    project = next(marked, None)
    above: list[Path] = []
    if project is not None and root.is_relative_to(project) and root != project:
        if trust.may_use_above(str(project)):
            return project, []
        has_settings = os.path.isfile(project / SETTINGS_FILE)  # noqa: PTH113 (never raises)
        above = [project] if has_settings else []
    start = project if project is not None and project.is_relative_to(root) else root
    for folder in map(Path, environments_above(str(start))):
        is_above = root.is_relative_to(folder) and folder != root
        if is_above and folder not in above and not trust.may_use_above(str(folder)):
            above.append(folder)
    return root, above


def _ignored_note(folder: Path) -> str:
    shown = path_text(str(folder))
    if not is_own_folder(folder):
        return f"note: settings and environments in {shown} ignored: others can write to it"
    command = f"jaxsight trust {path_text(shlex.quote(str(folder)))}"
    return (
        f"note: settings and environments in {shown} ignored: the folder is not trusted; "
        f"run `{command}` to trust it"
    )
