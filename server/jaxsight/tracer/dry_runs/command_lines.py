"""Give programs in a dry run the default arguments of their command lines; let them not wait.

The standard library's `argparse` and absl's flags; functions that click, typer, fire, tyro or hydra
call (`starts`). What has no default is unknown, except a configuration file
(`ml_collections.config_flags`): that of the folder `configs` next to the program, as
`--config=configs/default.py` gives it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

from jaxsight.files import reading
from jaxsight.tracer.dry_runs.values.unknown import Unknown, is_unknown
from jaxsight.tracer.importing import placeholders

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


def starts(
    function: object, args: tuple[object, ...]
) -> Iterator[tuple[Callable[..., object], dict[str, object]]]:
    """Yield the functions that a library calls with a command line, and the arguments by default.

    That is `fire.Fire(main)`, and `main()` where click, typer or hydra have decorated `main`.
    """
    *modules, name = placeholders.name_of(function)
    module = modules[0] if modules else ""
    is_missing = isinstance(function, placeholders.MissingObject)
    if module in _STARTERS and name in _STARTERS[module] and args and not is_unknown(args[0]):
        typer = sys.modules.get("typer")
        if module == "typer" and typer is not None:
            app = typer.Typer()
            app.command()(args[0])
            function = app
        elif callable(args[0]):
            yield args[0], _required(args[0])
            return
    elif is_missing and not args and callable(own := placeholders.opened(function)):
        if own is not function:
            yield own, _required(own)
        return
    package = type(function).__module__.partition(".")[0]
    has_commands = package in ("click", "typer") and type(function) is not FunctionType
    for command in _commands(function) if has_commands and not args[1:] else ():
        # So that click asks for nothing that is missing, and calls no callbacks.
        given = command.make_context(command.name, [], resilient_parsing=True).params
        needed = (each.name for each in command.params if each.required)
        given |= {each: Unknown() for each in needed if given.get(each) is None}
        own = inspect.unwrap(command.callback)
        yield own, _required(own) | given


_STARTERS = {"fire": {"Fire"}, "tyro": {"cli"}, "typer": {"run"}}
"""Functions that call another one with the command line."""


def _commands(function: Any) -> Iterator[Any]:
    """Yield the commands of click that an object is, or consists of."""
    if type(function).__name__ == "Typer":
        function = sys.modules["typer"].main.get_command(function)
    groups = getattr(function, "commands", None)
    if isinstance(groups, dict):
        for each in groups.values():
            yield from _commands(each)
    elif hasattr(function, "make_context"):
        yield function


def _required(function: Callable[..., object]) -> dict[str, object]:
    """Return something unknown for each parameter without a default."""
    return {
        each.name: Unknown()
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        and each.default is each.empty
    }


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
