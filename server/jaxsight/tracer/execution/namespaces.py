"""The namespaces of the files that were traced last, of which one runs at a time."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxsight.tracer.compat import devices
from jaxsight.tracer.execution.device_demand import Demands, MoreDevices
from jaxsight.tracer.execution.file_namespace import FileNamespace
from jaxsight.tracer.failures import UserError, refusal
from jaxsight.tracer.importing.import_folders import import_folders
from jaxsight.tracer.importing.imports import Imports
from jaxsight.wire.device_mentions import may_depend_on_devices
from jaxsight.wire.messages.requests import Trace

FILES = 16
"""Maximum number of files whose results are kept."""


@contextlib.contextmanager
def _unsaved_lines(file: str, text: str | None) -> Iterator[None]:
    """Provide the editor's text as the lines of a file, instead of that on disk."""
    if text is None:
        yield
        return
    # Without a time, Python does not compare the entry with the file (`linecache.checkcache`).
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        yield
    finally:
        linecache.cache.pop(file, None)


class Namespaces:
    """The namespaces of recently traced files, one of which runs at a time."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self._namespaces: OrderedDict[tuple[str, str], FileNamespace] = OrderedDict()
        self._demands = Demands()
        self._given = _Given((), devices.count_at_start(), is_targets=False)

    @contextlib.contextmanager
    def running(self, request: Trace) -> Iterator[FileNamespace]:
        """Activate the namespace of the request's file: path, working folder, and `sys.modules`."""
        name = (request.file, request.module)
        namespace = self._namespaces.get(name)
        if namespace is None:
            namespace = self._namespaces[name] = FileNamespace(request)
        self._namespaces.move_to_end(name)
        while len(self._namespaces) > FILES:
            self._namespaces.popitem(last=False)[1].forget_all()
        self._give_devices(request)
        folders = import_folders(request.file, request.module, request.root)
        sys.path[:0] = [folder for folder in folders if folder not in sys.path]
        sys.argv[:] = [request.file]
        if Path(request.root).is_dir():
            os.chdir(request.root)
        with (
            self._imports.running(namespace.module, request.file, folders),
            _unsaved_lines(request.file, self._imports.modules.texts.unsaved(request.file)),
        ):
            try:
                yield namespace
            finally:
                namespace.note_imports(self._imports)
                namespace.trim()

    def demand(self, request: Trace, need: MoreDevices) -> None:
        """Give a request more devices from now on, so that it can be repeated."""
        self._demands.add(request, need)

    def _give_devices(self, request: Trace) -> None:
        """Set the number of devices for a file, after another file has used as many as it needs.

        Raises:
            UserError: the mesh of its inputs has more devices than the target.
        """
        wanted = self._wanted(request)
        if wanted is None or wanted == self._given:
            return
        self._given = wanted
        count = wanted.count if wanted.count != devices.count_at_start() else None
        if devices.reset(wanted.count if wanted.is_targets else count, target=wanted.is_targets):
            self._imports.modules.unload_all()
            for namespace in self._namespaces.values():
                namespace.forget_all()
                namespace.outdate()

    def _wanted(self, request: Trace) -> _Given | None:
        """Return the devices for a request; `None` if any number is as good."""
        setters = tuple(chunk.key for chunk in request.chunks if devices.mentioned(chunk.text))
        least = request.mesh.size if request.mesh is not None else 1
        if request.devices:
            if least > request.devices:
                raise _too_few(request)
            texts = (chunk.text for chunk in request.chunks)
            if least == 1 and not may_depend_on_devices(texts):
                return None
            return _Given(setters, request.devices, is_targets=True)
        usual = devices.count_at_start()
        demanded = usual if setters else self._demands.of(request)
        if demanded is None and least == 1:
            return None
        return _Given(setters, max(demanded or 1, least, usual), is_targets=False)


@dataclass(frozen=True, slots=True)
class _Given:
    """The devices that code has."""

    setters: tuple[str, ...]
    """The keys of statements that set the number of devices themselves."""
    count: int
    """Their number, if no statement sets it."""
    is_targets: bool
    """Whether it is the number of the target, which no statement changes."""


def _too_few(request: Trace) -> UserError:
    assert request.mesh is not None
    return refusal(
        "inputs",
        f"the mesh {request.mesh.text} has {request.mesh.size} devices, "
        f"and the target has {request.devices}",
        type="TooFewDevices",
    )
