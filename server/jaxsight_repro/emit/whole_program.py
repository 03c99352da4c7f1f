"""The repro of a process that died while JAX traced: the user's program itself.

What killed it is between the calls that capture sees, in code of the user's, of a library or of JAX
that no tree of calls has. `jaxsight repro reduce` deletes statements of the file.
"""

from __future__ import annotations

import ast
import pickle
from dataclasses import replace
from pathlib import Path

from jaxsight_repro.capturing import case
from jaxsight_repro.capturing.run import is_ours
from jaxsight_repro.emit.data import Data, inputs_function
from jaxsight_repro.emit.repro_file import About, CannotEmit, Repro, whole
from jaxsight_source.files import reading

INPUTS = "example_inputs"


def whole_program(folder: Path, about: About) -> Repro:
    """Return the program of a case as a repro.

    Raises:
        CannotEmit: it is no script, module or function of a file.
    """
    info = case.read_json(folder, case.INFO)
    file, *arguments = info.get("arguments") or [""]
    path = Path(info.get("folder", ""), file)
    if not file or is_ours(str(path)):
        raise CannotEmit("the program is no file")
    try:
        saved = folder / case.TEXT
        text = reading.text(saved if saved.exists() else path)
    except reading.UnreadableError as error:
        raise CannotEmit(f"cannot read {path.name}: {error}") from error
    first: list[str] = []
    if own := _own_imports(text, path.parent):
        first += [f"sys.path.insert(0, {str(path.parent)!r})"]
        names = ", ".join(own)
        about = replace(about, notes=(*about.notes, f"It imports {names} of the program's folder."))
    if arguments:
        first += [f"sys.argv[1:] = {arguments!r}"]
    if first:
        first = ["import sys", "", *first, ""]
    call = folder / case.CALL
    return whole(text, about, first, _called(reading.data(call)) if call.exists() else ())


def _own_imports(text: str, folder: Path) -> list[str]:
    """Return the modules of the program's folder that it imports."""
    names: dict[str, None] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0]: None for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names[node.module.partition(".")[0]] = None
    return [each for each in names if any(map(Path.exists, (folder / each, folder / f"{each}.py")))]


def _called(content: bytes) -> list[str]:
    """Return the lines that call a function with the arguments that it was called with."""
    try:
        function, is_jitted, args, kwargs = pickle.loads(content)
    except pickle.UnpicklingError as error:
        raise CannotEmit(str(error)) from error
    data = Data()
    names = [*(f"argument {position}" for position in range(len(args))), *kwargs]
    lines = inputs_function([*args, *kwargs.values()], names, data)
    at = lines.index("def inputs():")
    imports = ["import jax", "import jax.numpy as jnp", "import numpy as np"]
    lines[at : at + 1] = [f"def {INPUTS}():", *(f"    {line}" for line in imports), ""]
    if data.stored:
        raise CannotEmit("its arguments are too large")
    passed = [f"*values[:{len(args)}]"] if args else []
    passed += [f"{name}=values[{len(args) + at}]" for at, name in enumerate(kwargs)]
    calls = [f"{function}({', '.join(passed)})"]
    if not is_jitted:
        calls.append(f"jax.jit({function})({', '.join(passed)})")
    return [
        "",
        "",
        *lines,
        "",
        "",
        'if __name__ == "__main__":',
        "    import jax",
        "",
        f"    values = {INPUTS}()",
        *(f"    {call}" for call in calls),
    ]
