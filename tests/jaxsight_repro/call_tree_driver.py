"""Runs programs with a tracker, and writes each as a file that makes the same calls.

Reads a JSON list of `{"name", "text", "arguments"}` from a file, and prints one JSON object a line.
A program without `arguments` is expected to fail; the others define `main`, which is called.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

from jaxsight_repro.capturing.call_tree.tracker import Tracker

_RUN = """

if __name__ == "__main__":
    import pickle
    from pathlib import Path

    main(*pickle.loads(Path(__file__).with_suffix(".pkl").read_bytes()))
"""


def main() -> None:
    programs, folder = Path(sys.argv[1]), Path(sys.argv[2])
    tracker = Tracker()
    tracker.install()
    for program in json.loads(programs.read_text(encoding="utf-8")):
        print(json.dumps(_observed(tracker, program, folder)), flush=True)


def _observed(tracker: Tracker, program: dict[str, Any], folder: Path) -> dict[str, Any]:
    from jaxsight_repro.emit.call_tree.write import write

    original = folder / f"{program['name']}_program.py"
    original.write_text(program["text"], encoding="utf-8")
    module: dict[str, Any] = {"__name__": "__main__"}
    report: dict[str, Any] = {"name": program["name"], "error": None, "message": ""}
    tracker.install()
    trees: list[Any] = []
    tracker.on_call = lambda starts: None if starts else trees.append(tracker.current())
    try:
        exec(compile(program["text"], str(original), "exec", dont_inherit=True), module)
        if program.get("arguments"):
            args = eval(program["arguments"], module)
            results = module["main"](*args)
        tree = trees[-1]
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        cls = type(error)
        name = cls.__qualname__
        report["error"] = (
            name if cls.__module__ in ("builtins", "__main__") else f"{cls.__module__}.{name}"
        )
        report["message"] = str(error)
        tree = tracker.failed(error)
    finally:
        tracker.uninstall()
    if tree is None:
        return report
    text, arguments = written = write(tree)
    report["text"] = text
    import jax
    import numpy as np

    file = folder / f"{program['name']}.py"
    file.write_text(text + _RUN, encoding="utf-8")
    if report["error"] is None:
        report |= _compared(module["main"], args, results, written, file)
        return report
    arrays = jax.tree.map(
        lambda part: np.asarray(part) if isinstance(part, jax.Array) else part, arguments
    )
    file.with_suffix(".pkl").write_bytes(pickle.dumps(arrays))
    return report


def _compared(
    function: Any,
    args: tuple[Any, ...],
    results: Any,
    written: tuple[str, tuple[object, ...]],
    file: Path,
) -> dict[str, Any]:
    """Return whether the written function has the same results, and the same jaxpr."""
    import jax
    import numpy as np

    from jaxsight_source.jaxprs.same.comparison import same_jaxpr

    text, arguments = written
    module: dict[str, Any] = {"__name__": "written"}
    exec(compile(text, str(file), "exec", dont_inherit=True), module)

    def flat(value: Any) -> list[Any]:
        return [
            jax.random.key_data(leaf)
            if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
            else leaf
            for leaf in map(jax.numpy.asarray, jax.tree.leaves(value))
        ]

    theirs, ours = flat(results), flat(module["main"](*arguments))
    rest = iter(ours)  # libraries' own jitted functions return more than theirs do
    leaves, tree = jax.tree.flatten(args)
    positions = {id(leaf): index for index, leaf in enumerate(leaves)}
    same = [any(part is leaf for part in jax.tree.leaves(arguments)) for leaf in leaves]

    def passed(xs: tuple[Any, ...]) -> Any:
        """The arguments of the written function: those of the program's, and what it captured."""
        if not all(same):
            return (*xs, *arguments[len(leaves) :])
        return jax.tree.map(
            lambda part: xs[positions[id(part)]] if id(part) in positions else part,
            arguments,
        )

    first = jax.make_jaxpr(lambda *xs: jax.tree.leaves(function(*jax.tree.unflatten(tree, xs))))
    second = jax.make_jaxpr(lambda *xs: jax.tree.leaves(module["main"](*passed(xs))))
    difference = same_jaxpr(first(*leaves), second(*leaves))
    return {
        "equal": all(any(np.array_equal(part, other) for other in rest) for part in theirs),
        "difference": None if difference is None else str(difference),
    }


if __name__ == "__main__":
    main()
