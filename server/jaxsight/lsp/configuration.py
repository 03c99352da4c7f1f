"""Folders, settings and Python environments from the client.

Settings come with `initialize` (`initializationOptions`, alone or under `jaxsight`), with
`workspace/didChangeConfiguration`, and as answers to our `workspace/configuration` requests: one
for the workspace and one for each folder.
Later ones override earlier ones, key by key, because clients also send empty ones.
Nothing is checked here: the engine knows the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jaxsight.lsp.documents.uris import path_of

if TYPE_CHECKING:
    from jaxsight.projects.projects import Projects
    from jaxsight.session import Session

SECTION = "jaxsight"
PYTHON_SECTION = "python"
"""The settings of the Python extensions of VS Code and its forks, which name an interpreter."""

_NOT_SETTINGS = frozenset({"trusted", "interpreters", "programs"})
"""Options that are state of the client, not the user's settings."""


class Configuration:
    """Everything that the client has sent so far."""

    def __init__(self, initialize: Mapping[str, object]) -> None:
        """Read the parameters of `initialize`, as JSON."""
        options = _mapping(initialize.get("initializationOptions"))
        trusted = options.get("trusted")
        self._trusted = trusted if isinstance(trusted, bool) else None
        self.programs = options.get("programs") is True
        """Whether the client requests features of printed programs, for any document."""
        self.interpreters: dict[str, str] = {}
        """Selected Python environments by folder, from the client's own selector."""
        folders = initialize.get("workspaceFolders")
        uris: list[object] = [initialize.get("rootUri")]
        if isinstance(folders, list) and folders:
            uris = [_mapping(folder).get("uri") for folder in folders]
        paths = [path_of(uri) for uri in uris if isinstance(uri, str)]
        roots = [path for path in paths if path is not None]
        if not roots and isinstance(path := initialize.get("rootPath"), str) and path:
            roots = [path.rstrip("/") or "/"]
        self.roots = list(dict.fromkeys(roots))
        process = initialize.get("processId")
        self.client_process: int | None = process if isinstance(process, int) else None
        alone = {key: value for key, value in options.items() if key not in _NOT_SETTINGS}
        own = options.get(SECTION)
        self._initial = alone if own is None else _mapping(own)
        self._pushed: Mapping[str, object] = {}
        self._is_revoked = False
        """Whether the last settings that the client sent revoke trust outside of our section."""
        self._pulled: Mapping[str, object] = {}
        self._pulled_by_root: dict[str, Mapping[str, object]] = {}
        self._pythons: dict[str, str] = {}
        self._applied: object = None
        self.choose_interpreters(options.get("interpreters"))

    @property
    def trusted(self) -> bool | None:
        """Whether the client trusts its workspace, if it says so; the engine interprets it.

        Settings may only revoke it: many editors merge a project's files into them.
        """
        layers = (self._initial, self._pushed, self._pulled, *self._pulled_by_root.values())
        is_revoked = self._is_revoked or any(layer.get("trusted") is False for layer in layers)
        return False if is_revoked else self._trusted

    def trust(self, trusted: bool) -> None:
        """Take the client's own decision about its workspace."""
        self._trusted = trusted

    @property
    def settings(self) -> dict[str, object]:
        """Settings of the whole workspace, unchecked."""
        merged = _merged(self._initial, self._pushed, self._pulled)
        merged.pop("trusted", None)
        return merged

    @property
    def settings_by_root(self) -> dict[str, dict[str, object]]:
        """Settings of each folder whose settings differ from the workspace's, unchecked."""
        base = self.settings
        return {
            root: merged
            for root, own in self._pulled_by_root.items()
            if (merged := _merged(base, {**own, "trusted": None})) != base
        }

    @property
    def pythons(self) -> dict[str, str]:
        """The editor's Python environments by folder: the selected one, else its setting."""
        return {**self._pythons, **self.interpreters}

    def apply(self, engine: Projects | Session) -> None:
        """Configure the engine, if anything has changed.

        The engine reports invalid values each time that it is configured.
        """
        roots, settings, trusted = list(self.roots), self.settings, self.trusted
        python, by_root = self.pythons, self.settings_by_root
        configuration = (roots, settings, trusted, python, by_root)
        if configuration != self._applied:
            self._applied = configuration
            engine.configure(
                roots, settings, trusted=trusted, editor_python=python, editor_by_root=by_root
            )

    def push(self, settings: object) -> None:
        """Take the settings of a `workspace/didChangeConfiguration`, which may carry none."""
        self._is_revoked = _mapping(settings).get("trusted") is False
        own = _mapping(settings).get(SECTION)
        if isinstance(own, Mapping):
            self._pushed = own

    @property
    def questions(self) -> list[tuple[str, str | None]]:
        """Sections to request by `workspace/configuration`, each with its folder."""
        folders: list[str | None] = [None, *self.roots]
        return [(name, folder) for folder in folders for name in (SECTION, PYTHON_SECTION)]

    def answered(
        self, questions: Sequence[tuple[str, str | None]], answers: Sequence[object]
    ) -> None:
        """Take the client's answers to `questions`; missing answers change nothing."""
        for (section, root), answer in zip(questions, answers, strict=False):
            settings = _mapping(answer)
            if section == PYTHON_SECTION:
                python = settings.get("pythonPath") or settings.get("defaultInterpreterPath")
                if root is not None and isinstance(python, str) and python != "python":
                    # Clients send variables without expanding them.
                    self._pythons[root] = python.replace("${workspaceFolder}", root)
            elif root is None:
                self._pulled = settings
            else:
                self._pulled_by_root[root] = settings

    def choose_interpreters(self, interpreters: object) -> None:
        """Take the environments selected in the client: a mapping of folder URIs to paths."""
        self.interpreters = {
            root: python
            for uri, python in _mapping(interpreters).items()
            if isinstance(python, str) and (root := path_of(uri)) is not None
        }

    def move(self, added: Sequence[str], removed: Sequence[str]) -> None:
        """Add and remove workspace folders, given as URIs."""
        gone = {path_of(uri) for uri in removed}
        remaining = [root for root in self.roots if root not in gone]
        new = [path for uri in added if (path := path_of(uri)) is not None]
        self.roots = list(dict.fromkeys(remaining + new))
        self._pulled_by_root = {r: s for r, s in self._pulled_by_root.items() if r not in gone}
        self._pythons = {r: p for r, p in self._pythons.items() if r not in gone}


def _mapping(value: object) -> Mapping[str, object]:
    """Return a JSON object; anything else becomes an empty one."""
    return value if isinstance(value, Mapping) else {}


def _merged(*layers: Mapping[str, object]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping):
                below = merged.get(key)
                merged[key] = _merged(below if isinstance(below, Mapping) else {}, value)
            elif value is not None:
                merged[key] = value
    return merged
