"""Which code has asked for the platform, so that its results are those of one platform alone.

A process shows one platform at a time, that of its last request that asked. Results of code that
has asked are dropped before another one is shown, and all others are kept: a file that does not ask
is not executed again. Modules of installed packages are never unloaded, so that a process in which
one has asked shows no other platform.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import PurePath
from types import FrameType

import jax

from jaxsight.tracer.compat import fake_devices
from jaxsight.tracer.importing.project_modules import ProjectModules
from jaxsight.tracer.interruptions import CancelledByServer
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.isolation.irreversible_effects import Spoilt
from jaxsight.wire.chunks import Chunk, chunk_of, line_in_chunk, real_file
from jaxsight.wire.messages.requests import FakeDevice
from jaxsight.wire.observations import Caveat

_READS = re.compile(
    r"""environ\.get\(\s*["']JAX_PLATFORM|getenv\(\s*["']JAX_PLATFORM"""
    r"""|["']JAX_PLATFORM\w*["']\s*\](?!\s*=[^=])|["']JAX_PLATFORM\w*["']\s+(?:not\s+)?in\b"""
    r"""|\bconfig\.jax_platform|\bconfig\.read\(\s*["']jax_platform"""
)
"""Code that reads which platform is selected, which is the CPU here."""
_SELECTS_CPU = re.compile(
    r"""["'](?:JAX_PLATFORM|jax_platform)\w*["']\s*(?:\]\s*=|,)\s*["']cpu["']"""
)
"""Code that selects the CPU."""

_KEPT = 256
"""Lines that are remembered as asking for what is not known; later ones have no caveat."""


class OtherPlatform(CancelledByServer):
    """Aborts a request whose code asks for the platform while another one is shown."""


_Line = tuple[str, int, int]
"""A line of the user's code that asked for what is not known of the target.

It has the name of the file that its code is compiled under, its number, and that of the import of a
module of the project; 0 for the traced file.
"""


class PlatformAsks:
    """The platform that code sees in this process, and who has asked for it."""

    def __init__(self, modules: ProjectModules) -> None:
        self.was_refused = False
        """Whether the running request asked while another platform was shown.

        This repeats `OtherPlatform`, as user code may have caught that exception.
        """
        self._modules = modules
        self._seen: FakeDevice | None = None
        self._wanted: FakeDevice | None = None
        self._files: set[str] = set()
        """Files of the user whose code asked, or called what did."""
        self._of_all = False
        """Whether JAX itself has asked, whose caches serve all files."""
        self._package = ""
        """An installed package that has asked."""
        self._unknown: dict[_Line, str] = {}
        fake_devices.watch(self._asked)

    def begin(self, device: FakeDevice | None, files: Callable[[], Collection[str]]) -> bool:
        """Show a request's device, unless results of others depend on the one that is shown.

        Then it is shown only if code asks for it. Returns whether results are invalid, which were
        made for another device.

        Args:
            device: that of the request.
            files: returns those that the request is known to depend on.

        Raises:
            Spoilt: an installed package has asked for another device.
        """
        self.was_refused = False
        self._wanted = device
        if device == self._seen:
            return False
        has_asked = bool(self._files or self._of_all or self._package)
        if has_asked and not self.concerns(files):
            return False
        if self._package:
            raise Spoilt(f"package {self._package} was used for another platform")
        self._files.clear()
        self._unknown.clear()
        self._of_all = False
        self._seen = device
        fake_devices.see(device)
        if has_asked:
            # JAX's caches may have jaxprs of code that saw the other device.
            jax.clear_caches()  # type: ignore[no-untyped-call]
        return has_asked

    def insist(self, file: str) -> None:
        """Take note that a file asks, so that the repeated request is shown its device."""
        self._files.add(file)

    def concerns(self, files: Callable[[], Collection[str]], chunks: Sequence[Chunk] = ()) -> bool:
        """Return whether results that depend on files and statements depend on the platform."""
        if self._of_all or self._package:
            return True
        if self._files and not self._files.isdisjoint(files()):
            return True
        return any(True for chunk in chunks for _ in _selections(chunk.text))

    def caveats(
        self, chunks: Sequence[Chunk], importer_of: Callable[[str], Chunk | None]
    ) -> Iterator[Caveat]:
        """Yield a caveat for each line that asks for what is not known of the target.

        Those of a module of the project are at its import, and name its file and line.

        Args:
            chunks: the slice as it was executed.
            importer_of: returns the chunk that imports a file.
        """
        if self._wanted is None:
            return
        for chunk in chunks:
            for number, reason in _selections(chunk.text):
                yield Caveat(chunk.id, reason, number)
        executed = {chunk.id for chunk in chunks}
        for (file, number, serial), reason in self._unknown.items():
            parts = chunk_of(file)
            if parts is not None:
                if parts["chunk"] in executed:
                    yield Caveat(parts["chunk"], reason, line_in_chunk(parts, number))
            elif serial == self._serial(file) and (importer := importer_of(file)) is not None:
                where = f"imports `{PurePath(file).name}`, whose line {number}"
                yield Caveat(importer.id, f"{where} {reason}")

    def note(self) -> str:
        """Return a note for an error of code that asked; empty if it sees where it runs."""
        if self._seen is None:
            return ""
        return f"the program sees the platform `{self._seen.family}`, but is executed on a CPU here"

    def _asked(self, asker: FrameType, unknown: str) -> None:
        """Remember who asks; `unknown` is a clause about what the target does not answer.

        Raises:
            OtherPlatform: another platform is shown.
        """
        if self._wanted != self._seen:
            self.was_refused = True
            raise OtherPlatform
        package = ""
        if code_origins.of_file(asker.f_code.co_filename) != code_origins.USER:
            package = str(asker.f_globals.get("__name__", "")).partition(".")[0]
            self._of_all |= package == "jax"
            self._package = self._package or (package if package != "jax" else "")
        # Only the nearest line of the user asks: those around it have called it.
        nearest = True
        for frame in code_origins.outwards(asker):
            file = frame.f_code.co_filename
            if code_origins.of_file(file) == code_origins.USER:
                self._files.add(real_file(file))
                if nearest and unknown and len(self._unknown) < _KEPT:
                    clause = f"calls `{package}`, which {unknown}" if package else unknown
                    self._unknown[file, frame.f_lineno, self._serial(file)] = clause
                nearest = False

    def _serial(self, file: str) -> int:
        """Return the number of the import of a file of the project; 0 if it is none."""
        loaded = (each for each in self._modules.loaded.values() if each.path == file)
        return next((each.serial for each in loaded), 0)


def _selections(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that read or set which platform is selected, with a clause."""
    if "platform" not in text.lower():
        return
    for number, line in enumerate(text.split("\n"), 1):
        code = line.partition("#")[0]
        if _SELECTS_CPU.search(code):
            yield number, "selects the CPU: here the platform is that of the target"
        elif _READS.search(code):
            yield number, "reads which platform is selected: it is the CPU here"
