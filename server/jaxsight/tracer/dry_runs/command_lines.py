"""Give programs in a dry run the default arguments of their command lines; let them not wait.

The standard library's `argparse` and absl's flags. What has no default is unknown, except a
configuration file (`ml_collections.config_flags`): that of the folder `configs` next to the
program, as `--config=configs/default.py` gives it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from jaxsight.files import reading
from jaxsight.tracer.dry_runs.values.unknown import Unknown

_CONFIGURATIONS = 8
"""Configuration files that are tried, each of which runs; the default ones come first."""


class _WrongUsageError(Exception):
    """The command line lacks an argument."""


class CommandLine:
    """The command line of a program in a dry run."""

    def __init__(self, file: str, read: Callable[[str], str]) -> None:
        """Create that of a program's file; `read` returns the text of another file, or nothing."""
        self._file, self._read = file, read
        self._restore: list[Callable[[], None]] = []
        self._absl = False

    @contextlib.contextmanager
    def applied(self) -> Iterator[CommandLine]:
        """Replace the command line in the block."""
        kind = argparse.ArgumentParser
        arguments, parse, sleep = sys.argv[:], kind.parse_known_args, time.sleep
        folder = tempfile.tempdir
        sys.argv[:] = [self._file]
        if folder is None:  # Python would try to write to it
            tempfile.tempdir = os.environ.get("TMPDIR", os.path.join(os.sep, "tmp"))  # noqa: PTH118

        def parse_known(parser: Any, args: Any = None, namespace: Any = None) -> Any:
            def fail(message: str) -> NoReturn:
                raise _WrongUsageError(message)

            # The parser's own prints its usage and exits.
            parser.error = fail
            try:
                return parse(parser, args, namespace)
            except _WrongUsageError:
                values = namespace if namespace is not None else argparse.Namespace()
                for action in parser._actions:
                    if action.dest != argparse.SUPPRESS and action.default != argparse.SUPPRESS:
                        default = action.default
                        if isinstance(default, str):
                            default = parser._get_value(action, default)
                        missing = action.required and default is None
                        setattr(values, action.dest, Unknown() if missing else default)
                return values, []
            finally:
                # Uncover the method of the class again.
                del parser.error

        # `parse_args` calls it.
        kind.parse_known_args = parse_known  # type: ignore[method-assign, assignment]
        time.sleep = lambda seconds: None
        self.imported()
        try:
            yield self
        finally:
            time.sleep = sleep
            kind.parse_known_args = parse  # type: ignore[method-assign]
            sys.argv[:], tempfile.tempdir = arguments, folder
            for restore in reversed(self._restore):
                restore()

    def imported(self) -> None:
        """Replace absl's start of programs, as soon as it is imported."""
        app, flags = sys.modules.get("absl.app"), sys.modules.get("absl.flags")
        if self._absl or app is None or flags is None:
            return
        self._absl = True
        run, values = app.run, flags.FLAGS
        defined, parsed = set(values), values.is_parsed()

        def restore() -> None:
            app.run = run  # type: ignore[attr-defined]
            for name in set(values) - defined:
                delattr(values, name)
            if not parsed:
                values.unparse_flags()

        def run_app(main: Callable[[list[str]], object], *_: object, **__: object) -> object:
            self.fill_flags()  # with the defaults
            return main([self._file])

        self._restore.append(restore)
        app.run = run_app  # type: ignore[attr-defined]

    def fill_flags(self) -> None:
        """Set the flags that have no default."""
        flags = sys.modules.get("absl.flags")
        if flags is None:
            return
        values = flags.FLAGS
        values.mark_as_parsed()
        for name in values:
            flag = values[name]
            if flag.value is None:
                is_config = "config" in type(flag).__name__.lower()
                flag.value = default_config(self._file, self._read) if is_config else Unknown()
                self._restore.append(functools.partial(setattr, flag, "value", None))


@contextlib.contextmanager
def default_flags() -> Iterator[None]:
    """Let absl's flags have their defaults in the block, if nothing has parsed a command line."""
    values = getattr(sys.modules.get("absl.flags"), "FLAGS", None)
    if values is None or values.is_parsed():
        yield
        return
    values.mark_as_parsed()
    try:
        yield
    finally:
        values.unparse_flags()


def default_config(file: str, read: Callable[[str], str]) -> object:
    """Return what `get_config()` of the default configuration next to a program returns."""
    folder = Path(file).parent
    found = ["configs/default.py", "config.py"]
    with contextlib.suppress(OSError):
        others = sorted((folder / "configs").glob("*.py"))[:_CONFIGURATIONS]
        found += [f"configs/{other.name}" for other in others]
    for name in found:
        try:
            path = reading.inside(folder, name)
            names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
            exec(compile(read(str(path)), str(path), "exec"), names)  # noqa: S102 - user code
            return names["get_config"]()
        except Exception:  # noqa: BLE001, S112 - user code, or no file
            continue
    return Unknown()
