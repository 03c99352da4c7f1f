"""Keep the code that attrs and dataclasses compile, as Python keeps the bytecode of modules.

For every class that they decorate, they write scripts and compile them, again in every process:
this is half of the import time of `lsprotocol.types`, which has some 550 classes, and half of the
import time of our own modules; 150 ms of an editor's start in all.
The compiled scripts are stored beside this module's own bytecode, under a digest of their text:
an entry can be missing, but never wrong.
If a future version of the libraries works differently, nothing is kept.

Bytecode is executed, so the file has to meet more conditions than Python requires of its own
(`files/private.py`): it begins with a digest of its content, and nobody but the user and root could
have written it.
If it does not meet them, the scripts are compiled.
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

from jaxsight.files import private
from jaxsight.files.ownership import KEPT

_KIND = f"bytecode {importlib.util.MAGIC_NUMBER.hex()}"
_LIMIT = 64 * 1024 * 1024
"""Bytes of a kept file, a choice: far more than the scripts of `lsprotocol` take."""


@contextlib.contextmanager
def cached_bytecode(file: Path, *makers: ModuleType) -> Iterator[None]:
    """Compile the scripts of `makers` from kept bytecode within the context.

    A maker is a module that calls `compile` or `exec`: its own global of that name shadows the
    builtin.
    On exit, scripts that had to be compiled are stored in `file`.
    """
    stored: dict[bytes, CodeType] = {}
    if (content := private.load(file, _KIND, _LIMIT)) is not None:
        with contextlib.suppress(ValueError, EOFError, TypeError):  # of another `marshal`
            stored = marshal.loads(content)
    used: dict[bytes, CodeType] = {}

    def compile_once(source: Any, filename: Any, mode: str, *options: Any, **named: Any) -> Any:
        if options or named or mode != "exec" or type(source) is not str:
            return compile(source, filename, mode, *options, **named)
        key = hashlib.blake2b(f"{filename}\n{source}".encode(), digest_size=16).digest()
        code = stored.get(key)
        if code is None:
            # This module's `__future__` imports must not apply to the maker's code.
            code = compile(source, filename, mode, dont_inherit=True)
        used[key] = code
        return code

    def execute(source: Any, names: dict[str, Any], *more_scopes: Any) -> None:
        code = compile_once(source, "<string>", "exec") if type(source) is str else source
        exec(code, names, *more_scopes)  # noqa: S102 - replaces `exec`

    for maker in makers:
        vars(maker).update(compile=compile_once, exec=execute)
    try:
        yield
    finally:
        for maker in makers:
            for name in ("compile", "exec"):
                vars(maker).pop(name, None)  # another context may have ended meanwhile
    if not (used.keys() <= stored.keys() or sys.dont_write_bytecode):
        # Readable by all who may read this module, like Python's own bytecode.
        mode = 0o600 if KEPT in os.environ else 0o644
        private.store(file, _KIND, marshal.dumps(used), mode=mode)


def file_for(imported: str) -> Path:
    """Return the file that keeps what an import compiles.

    It is beside this module's bytecode, so it differs for each version of Python. A confined
    process has a folder for it.
    """
    file = Path(importlib.util.cache_from_source(__file__, optimization=imported))
    kept = os.environ.get(KEPT)
    return Path(kept, file.name) if kept else file
