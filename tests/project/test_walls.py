"""The walls that an import graph cannot show: what the tracer's files import, and what a server's
process has loaded.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "server" / "jaxsight"
BROUGHT = (
    "compiler",
    "interpreters",
    "measuring",
    "meshes",
    "profiles",
    "sourcerizer",
    "targets",
    "tracer",
    "wire",
)
"""Packages that run outside the server's process, if not only there."""
WRITING_CALLS = ("arguments", "expressions", "notation", "reachable")
"""The modules of `recording` that write the arguments of calls."""
IN_THE_USERS_INTERPRETER = [
    PACKAGE / "__init__.py",
    PACKAGE / "files" / "__init__.py",
    PACKAGE / "files" / "appended.py",
    PACKAGE / "files" / "bytecode.py",
    PACKAGE / "files" / "locks.py",
    PACKAGE / "files" / "reading.py",
    PACKAGE / "lru.py",
    *(PACKAGE / "recording" / f"{name}.py" for name in ("__init__", *WRITING_CALLS)),
    PACKAGE / "text" / "__init__.py",
    PACKAGE / "text" / "inert.py",
    PACKAGE / "text" / "names.py",
    PACKAGE / "text" / "parsing.py",
    PACKAGE / "text" / "units.py",
    PACKAGE / "timeline.py",
    *(file for part in BROUGHT for file in sorted(PACKAGE.glob(f"{part}/**/*.py"))),
]
SERVERS = frozenset(
    {
        *("cli", "examples", "features", "lsp", "projects", "queries", "rules", "session.py"),
        *("settings", "source", "text", "trust", "workers"),
    }
)
"""What runs in the server's process, which has several threads."""
TREES = {
    "rules/jx421_read_after_donation/donors.py",
    "rules/jx443_undefined_gradient/rule.py",
    "rules/text/python_loops.py",
    "rules/text/transformations.py",
    "source/analysis/shape_unpacking.py",
    "source/definitions.py",
    "source/differentiated.py",
    "text/parsing.py",
}
"""Modules that take the values of literals in syntax trees, which parses nothing."""
ALLOWED = {"jax", "jaxlib", "numpy", "ml_dtypes"}
"""Besides the standard library. JAX itself depends on all of them."""
OWN = (
    "jaxsight.files.appended",
    "jaxsight.files.bytecode",
    "jaxsight.files.locks",
    "jaxsight.files.private",
    "jaxsight.files.protobuf",
    "jaxsight.files.reading",
    "jaxsight.files.texts",
    "jaxsight.lru",
    "jaxsight.text.inert",
    "jaxsight.text.names",
    *(f"jaxsight.recording.{name}" for name in WRITING_CALLS),
    "jaxsight.text.units",
    "jaxsight.timeline",
    *(f"jaxsight.{part}" for part in BROUGHT),
)


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                assert module is not None, f"{file}: a relative import"
                yield from (f"{module}.{alias.name}" for alias in names)


@pytest.mark.parametrize(
    "file", IN_THE_USERS_INTERPRETER, ids=lambda file: str(file.relative_to(PACKAGE))
)
def test_tracer_imports_the_standard_library_numpy_and_jax_alone(file: Path) -> None:
    for module in imported(file):
        top = module.partition(".")[0]
        assert (
            top in sys.stdlib_module_names
            or top in ALLOWED
            or f"{module}.".startswith(tuple(f"{own}." for own in OWN))
        ), f"{file.name} imports {module}"


def test_private_api_of_jax_is_used_in_compat_alone() -> None:
    for file in IN_THE_USERS_INTERPRETER:
        if file.parent.name != "compat":
            private = [name for name in imported(file) if name.startswith(("jax._src", "jaxlib."))]
            assert private == [], f"{file.name} imports {private}"


def test_a_servers_threads_parse_one_at_a_time() -> None:
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE)
        if name.parts[0] not in SERVERS:
            continue
        calls, alone = set[ast.Call](), set[ast.AST]()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.With(items=[ast.withitem(ast.Call(func=ast.Name(id="quiet")))]):
                    alone |= set(ast.walk(node))
                case ast.Call(func=ast.Attribute(ast.Name("ast"), "parse")):
                    calls.add(node)
                case ast.Call(func=ast.Attribute(ast.Name("ast"), "literal_eval")):
                    if str(name) not in TREES:
                        calls.add(node)
                case _:
                    pass
        lines = sorted(call.lineno for call in calls - alone)
        assert lines == [], f"{name} parses without `text/parsing.py`"


def test_a_servers_process_loads_neither_jax_nor_numpy() -> None:
    code = (
        "import sys\n"
        "import jaxsight.cli.app, jaxsight.lsp.language_server, jaxsight.lsp.server\n"
        "print(sorted({'jax', 'jaxlib', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
