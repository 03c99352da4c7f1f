"""The imports of a project's files, which a spare tracer executes while it waits.

Importing libraries takes seconds, a trace milliseconds: a spare that has imported the same modules
as the previous tracer replaces it unnoticed.
Only plain import statements of installed packages are repeated, and only those of successful
requests; the project's own modules and all other statements run only for requests.
"""

from __future__ import annotations

import ast
from pathlib import Path

from jaxsight.files import reading
from jaxsight.text.parsing import module_in
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.messages.requests import Trace

KEPT = 256
"""Remembered import statements, a choice: above the number in a project; a spare runs them all."""

MODULE = "__jaxsight__.imports"


class WarmImports:
    """The import statements seen in a project."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: dict[str, Chunk | None] = {}
        """Import statements by id; `None` for those that are not repeated."""

    def add(self, message: Trace) -> bool:
        """Remember the imports of a successful request, and return whether any were new."""
        is_new = False
        for chunk in message.chunks:
            if chunk.id in self._seen or not chunk.text.startswith(("import ", "from ")):
                continue
            roots = (message.root, f"{message.root}/src", str(Path(message.file).parent))
            is_repeated = _imports_packages(chunk, roots)
            self._seen[chunk.id] = chunk if is_repeated else None
            is_new |= is_repeated
        while len(self._seen) > KEPT:
            del self._seen[next(iter(self._seen))]
        return is_new

    def clear(self) -> None:
        """Forget all imports."""
        self._seen.clear()

    def request(self, id: int) -> Trace | None:
        """Return a request that executes the imports, or `None` if there are none.

        It names no function; that it fails to find one does not matter.
        """
        chunks = tuple(chunk for chunk in self._seen.values() if chunk is not None)
        if not chunks:
            return None
        file = str(Path(self._root, "<imports>"))
        return Trace(id, file, MODULE, self._root, chunks, function="")


def _imports_packages(chunk: Chunk, roots: tuple[str, ...]) -> bool:
    """Return whether a chunk has only imports, all of them from outside the project."""
    tree = module_in(chunk.text)
    if tree is None:
        return False
    names: list[str] = []
    for statement in tree.body:
        match statement:
            case ast.Import(names=aliases):
                names += [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0) if module != "__future__":
                names.append(module)
            case _:
                return False
    tops = {name.partition(".")[0] for name in names}
    return not any(
        reading.is_folder(Path(root, top)) or reading.is_file(Path(root, f"{top}.py"))
        for root in roots
        for top in tops
    )
