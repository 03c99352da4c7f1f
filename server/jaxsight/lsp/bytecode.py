"""Keeps what attrs compiles for the classes of `lsprotocol.types`, as Python keeps the bytecode of modules.

The protocol has some 550 classes. For each attrs writes a script and compiles it, again in every process: half of the import, 100
ms of an editor's start. The compiled scripts lie where this module's own bytecode lies, under the same rules, and are found
by a digest of their text: what is kept can be missing, never wrong. Where attrs works otherwise one day, nothing is kept.
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
from types import CodeType
from typing import Any

import attr._make

_NAME = "compile"
"""What the module of attrs calls; a global of this name stands before the builtin."""


@contextlib.contextmanager
def kept(file: Path | None = None) -> Iterator[None]:
    """Classes that attrs makes within are made of kept bytecode; what had to be compiled is kept at the end."""
    file = file or default_file()
    known = _load(file)
    new: dict[bytes, CodeType] = {}

    def compile_once(source: Any, filename: Any, mode: str, *rest: Any, **named: Any) -> Any:
        if rest or named or mode != "exec" or type(source) is not str or type(filename) is not str:
            return compile(source, filename, mode, *rest, **named)
        key = hashlib.blake2b(f"{filename}\n{source}".encode(), digest_size=16).digest()
        code = known.get(key)
        if code is None:
            code = new[key] = compile(source, filename, mode)
        return code

    setattr(attr._make, _NAME, compile_once)
    try:
        yield
    finally:
        delattr(attr._make, _NAME)
    if new and not sys.dont_write_bytecode:
        _store(file, known | new)


def default_file() -> Path:
    """Beside the bytecode of this module, which is another one for each version of Python."""
    return Path(importlib.util.cache_from_source(__file__, optimization="protocol"))


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
