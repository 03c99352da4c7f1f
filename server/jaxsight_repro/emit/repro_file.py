"""Write a function and its arguments as a repro: a standalone file that fails as they did."""

from __future__ import annotations

import ast
import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxsight.text.inert import block, one_line
from jaxsight.wire.meshes import Mesh
from jaxsight_repro import meshes
from jaxsight_repro.capturing.recorder import Outcomes
from jaxsight_repro.checks.base import CALL
from jaxsight_repro.emit import host_functions
from jaxsight_repro.emit.data import Data, inputs_function
from jaxsight_repro.environment import ProgramEnvironment
from jaxsight_repro.failures import HANG, LONGEST_MESSAGE, NoRepro, RunFailure
from jaxsight_repro.values import ConcreteValue, array_of
from jaxsight_source.api import traced, write_traced
from jaxsight_source.compat.staging import with_parameters
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.options import Derivatives, SourceOptions

_WIDTH = 100  # columns of its docstring, as formatters allow


class CannotEmit(NoRepro):
    """The program cannot be written as a repro; the message has the reason."""


@dataclass(frozen=True, slots=True)
class About:
    """What the file says about its program.

    Attributes:
        failure: what it does when it runs.
        environment: what it was captured with.
        demonstration: the lines that run it, and fail if the failure is reproduced.
        origin: where it was captured, such as `train.py:41 in step`.
        notes: further facts, one sentence each.
        callbacks: what the program's callbacks did, by the names of functions of the host.
        mesh: the mesh of the context, such as that of `jax.set_mesh`.
    """

    failure: RunFailure
    environment: ProgramEnvironment
    demonstration: Sequence[str] = CALL
    origin: str = ""
    notes: Sequence[str] = ()
    callbacks: Mapping[str, Outcomes] = field(default_factory=dict)
    mesh: Mesh | None = None


@dataclass(frozen=True, slots=True)
class Repro:
    """A standalone file, and the arrays of the file beside it."""

    text: str
    arrays: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the file to `path`, and its arrays beside it with the suffix `.npz`."""
        if self.arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **self.arrays)
            path.with_suffix(".npz").write_bytes(buffer.getvalue())
        path.write_text(self.text, encoding="utf-8")


def write(
    function: Callable[..., object],
    values: Sequence[ConcreteValue],
    names: Sequence[str],
    about: About,
    levels: Sequence[Derivatives] = ("exact", "primal"),
) -> Repro:
    """Write a function of flat arguments as a repro.

    Args:
        function: called as `function(*arrays)`; it is traced, not run.
        values: its arguments.
        names: a distinct identifier for each argument.
        levels: which rules of custom derivatives to write, the best first.

    Raises:
        CannotEmit: the function cannot be traced or written.
    """

    def main(*arguments: object) -> object:
        return function(*arguments)

    with_parameters(main, names)
    arguments = tuple(array_of(value) for value in values)
    problem: Exception | None = None
    for derivatives in (*levels, None):
        options = SourceOptions(
            "pretty",
            "main",
            constants="npz",
            derivatives=derivatives or "primal",
            run=False,
            fold=derivatives is not None,
        )
        try:
            # In the end without comparing the text with the program, which the failure does.
            source = write_traced(
                *traced(main, arguments, {}), options, prove=derivatives is not None
            ).source
        except (Unsourceable, Unwritable, NotImplementedError, TypeError, ValueError) as error:
            problem = problem or error
            continue
        if source.passed:
            missing = ", ".join(source.passed)
            raise CannotEmit(f"the program has values that cannot be written: {missing}")
        return assemble(source, values, names, about, source.constants)
    raise CannotEmit(str(problem)) from problem


def assemble(
    source: str,
    values: Sequence[object],
    names: Sequence[str],
    about: About,
    arrays: Mapping[str, np.ndarray] | None = None,
) -> Repro:
    """Return the repro of a module that defines `main`.

    Args:
        source: the module's text: imports, functions, `main`.
        values: the arguments of `main`.
        names: a name for each argument.
        arrays: what the module itself reads from the file beside it.
    """
    data = Data(has_unpack="def _unpack(" in source)
    hosts = host_functions.names_in(source)
    hangs = about.failure.kind == HANG
    defined = host_functions.definitions(hosts, about.callbacks, data, hangs=hangs)
    packed = data.definitions()
    if hosts:
        about = replace(about, notes=(*about.notes, host_functions.NOTE))
    inputs = inputs_function(values, names, data)
    context = [] if about.mesh is None else ["", f"jax.set_mesh({meshes.text(about.mesh)})"]
    options = [
        f'jax.config.update("{name}", {value!r})'
        for name, value in about.environment.options.items()
    ]
    imports, body = _split(source)
    body = "\n".join([*packed, *defined, "", "", body.strip("\n")]).strip("\n")
    text = "\n".join(
        [
            *_script_header(about),
            *_docstring(about),
            *_variables(about.environment),
            *_imports(imports, [*inputs, body, *about.demonstration, *context]),
            *([""] if options else []),
            *options,
            *context,
            "",
            "",
            body,
            "",
            "",
            *inputs,
            "",
            "",
            'if __name__ == "__main__":',
            *textwrap.indent("\n".join(about.demonstration), "    ").split("\n"),
            "",
        ]
    )
    compile(text, "repro", "exec")
    return Repro(text, {**(arrays or {}), **data.stored})


def replace_headline(repro: Repro, failure: RunFailure) -> Repro:
    """Return a repro whose docstring begins with another failure."""
    before, quotes, rest = repro.text.partition('"""')
    _, newline, after = rest.partition("\n")
    return Repro(f"{before}{quotes}{_escaped(_headline(failure))}{newline}{after}", repro.arrays)


def parameters_of(source: str) -> list[str]:
    """Return the names of the parameters of a module's `main`."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "main":
            return [argument.arg for argument in statement.args.args]
    raise LookupError("main")


def _split(source: str) -> tuple[list[str], str]:
    """Return the import statements of a module, and its text without them and its docstring."""
    lines = source.split("\n")
    imports: list[str] = []
    dropped: set[int] = set()
    for position, statement in enumerate(ast.parse(source).body):
        span = range(statement.lineno - 1, (statement.end_lineno or statement.lineno))
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            imports.append(ast.unparse(statement))
        elif not (position == 0 and isinstance(statement, ast.Expr)):
            continue
        dropped.update(span)
    body = [line for number, line in enumerate(lines) if number not in dropped]
    return imports, "\n".join(body).strip("\n")


def _script_header(about: About) -> list[str]:
    """Return the inline metadata of PEP 723, which `uv run` reads."""
    environment = about.environment
    major_minor = ".".join(environment.python.split(".")[:2])
    pins = [f'#     "{name}=={version}",' for name, version in environment.packages.items()]
    if "import jaxsight" in about.demonstration:
        pins.append('#     "jaxsight",')
    return [
        "# /// script",
        f'# requires-python = "=={major_minor}.*"',
        "# dependencies = [",
        *pins,
        "# ]",
        "# ///",
    ]


def _docstring(about: About) -> list[str]:
    headline = one_line(about.failure.headline)
    versions = ", ".join(
        f"{name} {version}" for name, version in about.environment.packages.items()
    )
    paragraphs = [
        [_headline(about.failure)],
        [f"With {versions}, Python {about.environment.python}."],
    ]
    if about.origin:
        paragraphs[-1].append(f"Captured from {one_line(about.origin)}.")
    paragraphs[-1] += [one_line(note) for note in about.notes]
    message = about.failure.message.strip()
    if "\n" in message or len(headline) > _WIDTH - 5:
        paragraphs.append(textwrap.indent(block(message[:LONGEST_MESSAGE]), "    ").split("\n"))
    safe = "\n\n".join("\n".join(map(_escaped, paragraph)) for paragraph in paragraphs)
    return ['"""' + safe, '"""', ""]


def _headline(failure: RunFailure) -> str:
    """Return the first line of a docstring."""
    return textwrap.shorten(one_line(failure.headline), _WIDTH - 5, placeholder=" …")


def _escaped(line: str) -> str:
    """Return a line as it is written in a docstring."""
    return (
        line.replace("\\", "\\\\").replace('"', '\\"')
        if '"""' in line
        else line.replace("\\", "\\\\")
    )


def _variables(environment: ProgramEnvironment) -> list[str]:
    """Return the lines that set variables, before JAX is imported."""
    lines: list[str] = []
    for name, value in environment.variables.items():
        if name == "XLA_FLAGS":
            joined = f'{(value + " ")!r} + os.environ.get("XLA_FLAGS", "")'
            lines.append(f'os.environ["XLA_FLAGS"] = {joined}')
        else:
            lines.append(f'os.environ.setdefault("{name}", {value!r})')
    return ["import os", "", *lines, ""] if lines else []


_MODULES = {
    "jnp": "import jax.numpy as jnp",
    "np": "import numpy as np",
    "Path": "from pathlib import Path",
    **{name: f"import {name}" for name in ("zlib", "itertools", "time", "base64")},
}


def _imports(imports: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return the import statements, with those that the inputs and the demonstration need."""
    text = "\n".join(lines)
    read = {line for name, line in _MODULES.items() if re.search(rf"\b{name}\b", text)}
    needed = {"import jax", *imports, *read}
    standard = [line for line in needed if "jax" not in line and "numpy" not in line]
    others = needed.difference(standard)
    order = sorted(standard, key=_order), sorted(others, key=_order)
    return [*order[0], *([""] if standard else []), *order[1]]


def _order(line: str) -> tuple[bool, str]:
    words = line.split()
    return words[0] == "from", words[1]
