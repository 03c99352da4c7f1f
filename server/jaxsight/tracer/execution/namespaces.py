"""The namespaces of the files that were traced last, of which one runs at a time."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from jaxsight.tracer.compat import devices
from jaxsight.tracer.execution.device_demand import Demands, MoreDevices
from jaxsight.tracer.execution.file_namespace import FileNamespace
from jaxsight.tracer.importing.import_folders import import_folders
from jaxsight.tracer.importing.imports import Imports
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
        self._given: tuple[tuple[str, ...], int] = (
            (),
            devices.count_at_start(),
        )
        """The keys of statements that set the number of devices themselves, and the number given
        otherwise.
        """

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
        """Set the number of devices for a file, after another file has used as many as it needs."""
        setters = tuple(chunk.key for chunk in request.chunks if devices.mentioned(chunk.text))
        usual = devices.count_at_start()
        demanded = usual if setters else self._demands.of(request)
        if demanded is None:
            return
        wanted = (setters, max(demanded, usual))
        if wanted == self._given:
            return
        self._given = wanted
        if devices.reset(demanded if demanded > usual else None):
            self._imports.modules.unload_all()
            for namespace in self._namespaces.values():
                namespace.forget_all()
                namespace.outdate()
