"""Compile a function of a file, which is not edited, on eight virtual CPU devices.

`python oracle.py FILE < JSON` reads `[[function, arguments]…]` and prints the HLO of each, as JSON.
It runs in a process of its own, and uses no code of `jaxsight`.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import sys
import traceback
import types
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
os.environ["MPLBACKEND"] = "agg"


def main() -> None:
    """Print the HLO of each function, or why there is none."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    path = Path(sys.argv[1]).resolve()
    wanted: list[tuple[str, str]] = json.load(sys.stdin)
    results: list[dict[str, str]] = []
    for function, arguments in wanted:
        try:
            namespace = _namespace(path, function)
            results.append({"hlo": _hlo(namespace, function, arguments)})
        except Exception:  # noqa: BLE001 - reported
            results.append({"error": traceback.format_exc(limit=-3)})
    json.dump(results, answers)


_namespaces: dict[tuple[Path, int], dict[str, Any]] = {}


def _namespace(path: Path, function: str) -> dict[str, Any]:
    """Execute the file up to the function's last definition; what is not installed is left out."""
    sys.path.insert(0, str(path.parent))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = function.partition(".")[0]
    last = max(
        i
        for i, node in enumerate(tree.body)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
    )
    if (path, last) not in _namespaces:
        module = types.ModuleType(path.stem)
        sys.modules[path.stem] = module
        module.__file__ = str(path)
        for node in tree.body[: last + 1]:
            code = compile(ast.Module([node], []), str(path), "exec", dont_inherit=True)
            try:
                exec(code, module.__dict__)
            except (ModuleNotFoundError, NameError) as error:
                print(f"left out: {error}")
        _namespaces[path, last] = vars(module)
    return _namespaces[path, last]


def _hlo(namespace: dict[str, Any], function: str, arguments: str) -> str:
    import jax
    import jax.numpy as jnp

    dtypes = {"f32": jnp.float32, "bf16": jnp.bfloat16, "i32": jnp.int32, "bool": bool}
    known = {
        "A": lambda dtype, *shape: jax.ShapeDtypeStruct(shape, dtypes[dtype]),
        "jax": jax,
    }
    value: Any = namespace
    first, *rest = function.split(".")
    value = namespace[first]
    for part in rest:
        value = getattr(value, part)
    context: Any = contextlib.nullcontext()
    if arguments.startswith("mesh: "):
        mesh, _, arguments = arguments.removeprefix("mesh: ").partition("; ")
        context = jax.set_mesh(eval(mesh, namespace))
    with context:
        inputs = eval(f"({arguments},)" if arguments else "()", {**namespace, **known})
        lower = getattr(value, "lower", None) or jax.jit(value).lower
        compiled = lower(*inputs).compile()
    text: str = getattr(compiled, "compiled", compiled).as_text()
    return text


if __name__ == "__main__":
    main()
