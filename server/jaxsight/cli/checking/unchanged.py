"""Results of earlier checks: a file of which nothing has changed since is not traced again.

A result is used if everything that it was made of is the same: the texts and the data that the
tracers reported, the programs that call the file's functions, the settings, the installed packages,
the compilers, the environment variables, and jaxsight itself. One of which that is not known, such
as that of a function that ended its tracer, is not stored. How long inputs may be looked for is no
part: a result is that of a search that had the time it needed.
"""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import dataclass, replace

from jaxsight import __version__
from jaxsight.cli.checking.locked import LockFiles
from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.output.reports.reported import CheckResult
from jaxsight.cli.parameters import InputsChoice
from jaxsight.cli.resident.endpoint import OF_TERMINALS
from jaxsight.cli.resident.session_pool import own_code
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.files import private
from jaxsight.files.cache_folder import CacheFolder
from jaxsight.files.texts import Version, stamp_of
from jaxsight.projects.project import Project
from jaxsight.projects.python_discovery import package_folders
from jaxsight.queries.choices import environment_of
from jaxsight.recording import recorded_file
from jaxsight.targets.target import Target
from jaxsight.trust.decisions import SSH
from jaxsight.wire import frames as wire
from jaxsight.wire.messages.inputs import EntryPoint
from jaxsight.wire.messages.replies import Hello
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.environments import CompilerEnvironment
from jaxsight.workers.results import Sources

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A result, and what it was made of."""

    result: CheckResult
    text: str
    """The digest of the text, and of the cells that it is made of."""
    files: tuple[tuple[str, Version], ...]
    programs: tuple[EntryPoint, ...]
    hello: Hello
    """The handshake of the tracer: the default target depends on its JAX."""
    python: str
    circumstances: str
    """The digests of the Python, and of everything else."""


class UnchangedFiles:
    """The stored results of one command."""

    def __init__(
        self, run: CommandRun, *, with_fixes: bool, may_read: bool, locks: LockFiles | None
    ) -> None:
        """Store and find results.

        Args:
            run: the run of the command.
            with_fixes: whether results have fixes.
            may_read: whether stored results are used.
            locks: if given, results have the facts of functions for the targets of these.
        """
        self._engine = run.session.engine
        self._inputs = run.inputs
        self._with_fixes = with_fixes
        self._may_read = may_read
        self._locks = locks
        folder = private.cache_folder("checks", f"v{__version__}")
        limit = self._engine.projects.any_settings.cache.size
        self._entries = CacheFolder(folder, f"check {__version__}", ".check", limit)
        self._pythons: dict[str, str] = {}
        # Of the compilers all that are installed: contracts compile for other targets, too.
        compilers = [
            (each.platform, each.jax, each.plugin)
            for platform in environments.MEGABYTES
            for each in environments.installed(platform)
        ]
        variables = sorted(item for item in os.environ.items() if item[0] not in OF_TERMINALS)
        self._surroundings = _digest(own_code(), compilers, variables)

    async def result(self, path: str, text: str, cells: Cells) -> CheckResult | None:
        """Return the result of a file of which nothing has changed since it was checked."""
        project, texts = self._engine.projects.of(path), self._engine.projects.texts
        if not self._may_read or SSH in text or project.held_back:
            return None
        content = self._entries.load(self._name(path, project), wire.FRAME_LIMIT)
        if content is None:
            return None
        try:
            stored = wire.load(_Stored, content)
        except wire.WireError as error:
            log.warning("the stored result of %s is ignored: %s", path, error)
            return None
        if stored.text != _digest(text, cells) or not texts.are_current(dict(stored.files)):
            return None
        if stored.python != self._python(project):
            return None
        project.remember(stored.hello)
        is_same = stored.circumstances == self._circumstances(path, project)
        is_same = is_same and stored.programs == await self._programs(path, text)
        return _with_source(stored.result, text) if is_same else None

    async def store(
        self, path: str, text: str, cells: Cells, result: CheckResult, sources: Sources
    ) -> None:
        """Store the result of a file, unless a part of what it was made of is not known."""
        project, texts = self._engine.projects.of(path), self._engine.projects.texts
        if sources.unknown or project.held_back or SSH in text or project.hello is None:
            return
        may_pass = not all(refused.function.lasts for refused in result.refused)
        if may_pass or not texts.are_current(sources.files):
            return
        stored = _Stored(
            _with_source(result, ""),
            _digest(text, cells),
            tuple(sources.files.items()),
            await self._programs(path, text),
            project.hello,
            self._python(project),
            self._circumstances(path, project),
        )
        try:
            self._entries.store(self._name(path, project), wire.dump(stored))
        except wire.WireError as error:
            log.warning("cannot store the result of %s: %s", path, error)

    def _name(self, path: str, project: Project) -> str:
        """Return the name of a file's result: settings and options may change back."""
        locked = self._locks.targets(path) if self._locks is not None else None
        return _digest(path, project.settings, self._inputs, self._with_fixes, locked)

    async def _programs(self, path: str, text: str) -> tuple[EntryPoint, ...]:
        project = self._engine.projects.of(path)
        if self._inputs is not InputsChoice.ALL or not project.settings.examples_from_programs:
            return ()
        return await self._engine.dry_runs.programs(project, path, text)

    def _python(self, project: Project) -> str:
        """Return a digest of an interpreter and of what is installed for it."""
        python = project.interpreter.path if project.interpreter is not None else ""
        if python not in self._pythons:
            installed = [(str(each), stamp_of(str(each))) for each in package_folders(python)]
            self._pythons[python] = _digest(python, stamp_of(python), installed)
        return self._pythons[python]

    def _circumstances(self, path: str, project: Project) -> str:
        """Return a digest of what the result of a file depends on besides texts and Python."""
        recorded = recorded_file.stamp(project.root)
        targets = [_with_compiler(t, project) for t in self._engine.choices.targets(path)]
        return _digest(self._surroundings, project.signature, recorded, targets)


def _with_source(result: CheckResult, source: str) -> CheckResult:
    """Return a result whose findings have this source: of a stored text, there is a digest."""
    reported = tuple(replace(each, source=source) for each in result.reported)
    return replace(result, reported=reported)


def _with_compiler(target: Target, project: Project) -> object:
    """Return a target with all that determines the output of its compiler."""
    python = project.interpreter.path if project.interpreter is not None else ""
    environment = environment_of(target, python, project.jax)
    if not isinstance(environment, CompilerEnvironment):
        return target, environment
    return target, environments.identity(environment, target)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
