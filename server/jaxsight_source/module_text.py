"""The text of a module: passes over its statements, imports, docstring."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from typing import Any

import jax

from jaxsight_source.options import SourceOptions
from jaxsight_source.passes.inlining import inlined
from jaxsight_source.passes.source_comments import with_sources
from jaxsight_source.text.exprs import IMPORTS, parsed, subscript
from jaxsight_source.text.statements import Line, Raw, assign, lines, roots
from jaxsight_source.text.walks import modules_read
from jaxsight_source.values import constants as arrays
from jaxsight_source.writing.writer import Writer


def module_lines(writer: Writer, main: list[ast.stmt], name: str) -> list[Line]:
    """Return the lines of a module whose function `name` the statements in `main` define."""
    options = writer.options
    inner: list[ast.stmt] = [*writer.functions.statements, *main]
    if options.style == "pretty" and not options.shapes:
        inner = inlined(inner, name)
    if options.sources:
        inner = with_sources(inner)
    constants = writer.constants
    derived: list[ast.stmt] = []
    if constants.packed:
        inner.insert(0, Raw(["", "", *arrays.UNPACK]))
        for constant, packed in constants.packed:
            derived.append(Raw(arrays.definition(constant, packed)))
    if options.constants == "npz" and constants.stored:
        reading: list[ast.stmt] = []
        for constant, array in constants.stored.items():
            entry = subscript(ast.Name("_stored"), ast.Constant(constant))
            reading.append(assign(constant, arrays.read_back(entry, array)))
        beside = parsed('np.load(Path(__file__).with_suffix(".npz"))')
        derived.append(ast.With([ast.withitem(beside, ast.Name("_stored"))], reading))
    derived.extend(constants.derived)
    statements = [*constants.statements, *inner, *derived]
    written = lines(statements, before=Raw([]))
    text = "\n".join(line.text for line in written)
    imports = _imports(text, statements, writer)
    gap = [""] if imports or constants.statements else []  # functions bring their own empty lines
    under = [""] if imports and constants.statements else []
    top = [*_docstring(name, options), *_devices_note(text), *gap, *imports, *under]
    return [*map(Line, top), *written]


def _docstring(name: str, options: SourceOptions) -> list[str]:
    first = f"`{name}`, written by jaxsight for JAX {jax.__version__}."
    config: Any = jax.config
    if config.jax_enable_x64:
        notes = ["Holds with jax_enable_x64 on."]
    else:
        notes = ["Holds with jax_enable_x64 off, JAX's default."]
    if options.derivatives == "primal":
        notes.append("Does not keep derivatives: custom_jvp and custom_vjp rules are omitted.")
    elif options.derivatives == "first":
        notes.append("Keeps first-order derivatives only, where there are custom rules.")
    return ['"""' + first, "", *notes, '"""']


_MADE = re.compile(r"jax\.make_mesh\(\s*\((\d+(?:,\s*\d+)*),?\)")
_FIRST = re.compile(r"jax\.devices\(\)\[:(\d+)\]")
_AT = re.compile(r"jax\.devices\((?:\"\w+\")?\)\[(\d+)\]")


def _devices_note(text: str) -> list[str]:
    """Return a comment for a module that needs several devices, which a CPU can simulate."""
    counts = [
        *(math.prod(map(int, sizes.split(","))) for sizes in _MADE.findall(text)),
        *map(int, _FIRST.findall(text)),
        *(int(index) + 1 for index in _AT.findall(text)),
    ]
    count = max(counts, default=1)
    if count == 1:
        return []
    flags = f"XLA_FLAGS=--xla_force_host_platform_device_count={count}"
    return ["", f"# needs {count} devices: {flags} simulates them"]


def _imports(text: str, statements: Sequence[ast.stmt], writer: Writer) -> list[str]:
    """Return the imports of a module as import sorters order them: `import` before `from`."""
    used = roots(text)
    standard = [
        f"import {module}"
        for module in ("base64", "zlib")
        if module in used and writer.constants.packed
    ]
    if "Path" in used and writer.constants.stored:
        standard.append("from pathlib import Path")
    short = [line for name, line in IMPORTS.items() if name in used]
    full = {f"import {module}" for module in modules_read(statements)}
    ordered = sorted({*short, *full}, key=lambda line: (line.startswith("from "), line.split()[1:]))
    groups = [standard, _merged(ordered)]
    lines_: list[str] = []
    for group in groups:
        lines_ += ([""] if lines_ and group else []) + group
    return lines_


def _merged(imports: list[str]) -> list[str]:
    """Merge sorted `from` imports of the same module into one line."""
    joined: list[str] = []
    for line in imports:
        module, separator, name = line.partition(" import ")
        if separator and joined and joined[-1].startswith(f"{module} import "):
            joined[-1] += f", {name}"
        else:
            joined.append(line)
    return joined
