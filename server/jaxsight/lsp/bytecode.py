"""Keeps what attrs and dataclasses compile, as Python keeps the bytecode of modules.

For every class that they decorate they write scripts and compile them, again in every process: half of the import of `lsprotocol.types`,
which has some 550 classes, and half of the import of our own modules; 150 ms of an editor's start in all. The compiled scripts lie where
this module's own bytecode lies, under the same rules, and are found by a digest of their text: what is kept can be missing, never
wrong. Where the libraries work otherwise one day, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import marshal
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


@contextlib.contextmanager
def kept(file: Path, *makers: ModuleType) -> Iterator[None]:
    """Classes that `makers` make within are made of kept bytecode; what had to be compiled is kept at the end.

    A maker is a module that calls `compile` or `exec`: its own global of that name stands before the builtin.
    """
    known = _load(file)
    used: dict[bytes, CodeType] = {}

    def compile_once(source: Any, filename: Any, mode: str, *rest: Any, **named: Any) -> Any:
        if rest or named or mode != "exec" or type(source) is not str:
            return compile(source, filename, mode, *rest, **named)
        key = hashlib.blake2b(f"{filename}\n{source}".encode(), digest_size=16).digest()
        code = known.get(key)
        if code is None:
            # What this module imports from `__future__` is not the maker's affair.
            code = compile(source, filename, mode, dont_inherit=True)
        used[key] = code
        return code

    def execute(source: Any, names: dict[str, Any], *rest: Any) -> None:
        code = compile_once(source, "<string>", "exec") if type(source) is str else source
        exec(code, names, *rest)  # noqa: S102 - what it stands for

    for maker in makers:
        vars(maker).update(compile=compile_once, exec=execute)
    try:
        yield
    finally:
        for maker in makers:
            del vars(maker)["compile"], vars(maker)["exec"]
    if not (used.keys() <= known.keys() or sys.dont_write_bytecode):
        _store(file, used)


def file_for(imported: str) -> Path:
    """Where to keep what an import compiles: beside this module's bytecode, which is another one for each version of Python."""
    return Path(importlib.util.cache_from_source(__file__, optimization=imported))


def _load(file: Path) -> dict[bytes, CodeType]:
    magic = importlib.util.MAGIC_NUMBER
    try:
        data = file.read_bytes()
        return marshal.loads(data[len(magic) :]) if data.startswith(magic) else {}
    except (OSError, ValueError, EOFError, TypeError):
        return {}  # not there yet, or cut off


def _store(file: Path, codes: dict[bytes, CodeType]) -> None:
    """Write it whole or not at all; another server may do the same just now."""
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(importlib.util.MAGIC_NUMBER + marshal.dumps(codes))
        part.replace(file)
    except OSError:
        with contextlib.suppress(OSError):  # a folder that is not ours: starts stay slow
            part.unlink()
