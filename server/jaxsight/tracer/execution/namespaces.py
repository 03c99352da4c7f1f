"""The namespaces of the files that were traced last, of which one runs at a time."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.files.texts import Version
from jaxsight.tracer.compat import devices, fake_processes
from jaxsight.tracer.execution.device_demand import MOST, Demand, Demands, MoreDevices
from jaxsight.tracer.execution.file_namespace import FileNamespace
from jaxsight.tracer.execution.platform_asks import PlatformAsks
from jaxsight.tracer.failures import refusal
from jaxsight.tracer.importing.finding import import_folders
from jaxsight.tracer.importing.imports import Imports
from jaxsight.wire.device_mentions import may_depend_on_devices, mentions_devices, names_devices
from jaxsight.wire.messages.requests import Trace

FILES = 16
"""Files whose results are kept, with their objects; another file is executed from the start."""


class Namespaces:
    """The namespaces of recently traced files, one of which runs at a time."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self._namespaces: OrderedDict[tuple[str, str], FileNamespace] = OrderedDict()
        self._demands = Demands()
        self._mentions: dict[str, tuple[Version, bool]] = {}
        """Whether the project's files name devices, by their versions."""
        self._given = _Given((), devices.count_at_start(), is_targets=False)
        self.platform = PlatformAsks(imports.modules)
        fake_processes.watch()

    @contextlib.contextmanager
    def running(self, request: Trace) -> Iterator[FileNamespace]:
        """Activate the namespace of the request's file: path, working folder, and `sys.modules`."""
        name = (request.file, request.module)
        namespace = self._namespaces.get(name)
        if namespace is None:
            namespace = self._namespaces[name] = FileNamespace(request, self._imports)
        self._namespaces.move_to_end(name)
        while len(self._namespaces) > FILES:
            self._namespaces.popitem(last=False)[1].forget_all()
        fake_processes.see(request.process)
        if self.platform.begin(request.device, namespace.depends_on):
            self._forget_all()
        self._give_devices(request, namespace)
        folders = import_folders(request.file, request.module, request.root)
        # In place: the lists stay the same objects, which user code may hold.
        sys.path[:0] = [folder for folder in folders if folder not in sys.path]
        sys.argv[:] = [request.file]
        if Path(request.root).is_dir():
            os.chdir(request.root)
        file = request.file
        if (text := self._imports.texts.unsaved(file)) is not None:
            # Without a time, Python does not compare the entry with the file on disk
            # (`linecache.checkcache`).
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        with self._imports.running(namespace.module, file, folders):
            try:
                yield namespace
            finally:
                namespace.note_imports()
                namespace.trim()
                linecache.cache.pop(file, None)

    def demand(self, request: Trace, need: MoreDevices) -> None:
        """Give a request more devices from now on, so that it can be repeated."""
        self._demands.add(request, need)

    def _give_devices(self, request: Trace, namespace: FileNamespace) -> None:
        """Set the number of devices for a file, after another file has used as many as it needs.

        Raises:
            UserError: the mesh of its inputs has more devices than the target.
        """
        wanted = self._wanted(request, namespace)
        namespace.guesses_devices = wanted is not None and wanted.is_guess
        if wanted is None or wanted == self._given:
            return
        is_usual = wanted.count == devices.count_at_start() and not wanted.is_targets
        if devices.reset(None if is_usual else wanted.count, target=wanted.is_targets):
            self._forget_all()
        self._given = wanted

    def _forget_all(self) -> None:
        """Drop all that was executed: it was for another backend, or another platform."""
        self._imports.modules.unload_all()
        for namespace in self._namespaces.values():
            namespace.forget_all()
            namespace.outdate()

    def _wanted(self, request: Trace, namespace: FileNamespace) -> _Given | None:
        """Return the devices for a request; `None` if any number is as good."""
        setters = tuple(chunk.key for chunk in request.chunks if devices.mentioned(chunk.text))
        size = request.mesh.size if request.mesh is not None else 1
        least = size if size <= MOST else 1  # larger meshes are refused with the inputs
        if request.devices:
            if least > request.devices:
                assert request.mesh is not None
                words = f"the mesh {request.mesh.text} has {size} devices"
                words += f", and the target has {request.devices}"
                raise refusal("inputs", words, type="TooFewDevices")
            if least == 1 and not self._may_depend(request, namespace):
                return None
            return _Given(setters, request.devices, is_targets=True)
        usual = devices.count_at_start()
        demand = None if setters else self._demands.of(request)
        if not setters and demand is None and least == 1:
            if not self._may_depend(request, namespace):
                return None
            demand = Demand(1)
        count = max(demand.count if demand is not None else usual, least, usual)
        is_guess = demand is not None and (demand.is_guess or count == 1) and usual == least == 1
        return _Given(setters, count, is_targets=False, is_guess=is_guess)

    def _may_depend(self, request: Trace, namespace: FileNamespace) -> bool:
        """Return whether a slice may depend on the number of devices, also by its imports."""
        if names_devices(request) or not may_depend_on_devices(request):
            return names_devices(request)
        files = namespace.imported_by(request)
        return files is None or any(map(self._mentions_devices, files))

    def _mentions_devices(self, file: str) -> bool:
        """Return whether a file of the project names devices or meshes."""
        texts = self._imports.modules.texts
        version = texts.version(file)
        known = self._mentions.get(file)
        if known is None or known[0] != version:
            known = self._mentions[file] = version, mentions_devices(texts.current(file))
        return known[1]


@dataclass(frozen=True, slots=True)
class _Given:
    """The devices that code has."""

    setters: tuple[str, ...]
    """The keys of statements that set the number of devices themselves."""
    count: int
    """Their number, if no statement sets it."""
    is_targets: bool
    """Whether it is the number of the target, which no statement changes."""
    is_guess: bool = field(default=False, compare=False)
    """Whether neither the program nor the target names them."""
