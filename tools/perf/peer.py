"""How long it takes to write a function as source, beside what brainstate's `fn_to_python_code`
takes.

`PYTHONPATH=server:FOLDER python -m tools.perf.peer --every 60` takes each 60th of JAX's own
primitive harnesses, with brainstate installed in FOLDER (`pip install --no-deps --target FOLDER
brainstate brainunit brainevent saiunit array-api-compat tqdm`): it is no dependency of ours. Both
write a function that they have not seen, in processor time, and those harnesses count that both
pass: the text runs and gives the same bits. Running the text beside the original is measured apart,
for brainstate does nothing of the kind.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.written import load
from tests.jaxsight_source import harnesses

WAYS = {
    "plain": SourceOptions("lax", run=False),
    "pretty": SourceOptions("pretty", run=False),
    "pretty, and run": SourceOptions("pretty", run=True),
}


def _timed(make: Callable[[Callable[..., Any]], Any], function: Any, runs: int) -> float:
    """Return the median of milliseconds for a function that JAX has not traced yet."""
    taken = []
    for _ in range(runs):
        begin = time.process_time()
        make(lambda *args: function(*args))
        taken.append((time.process_time() - begin) * 1000)
    return statistics.median(taken)


def _theirs(args: Sequence[Any]) -> Callable[[Callable[..., Any]], str]:
    from brainstate.transform import fn_to_python_code

    return lambda function: str(fn_to_python_code(function, *args))


def _passes(text: str, args: Sequence[Any], expected: Any) -> bool:
    """Whether brainstate's text gives the bits of the results, leaf by leaf."""
    namespace: dict[str, Any] = {"jax": jax}  # which it does not import
    exec(text, namespace)
    made = namespace["generated_function"](*args)
    return harnesses.bits(jax.tree.leaves(made)) == harnesses.bits(jax.tree.leaves(expected))


def compared(harness: Any, runs: int) -> dict[str, float] | None:
    """Return milliseconds of theirs and of ours in each way; None unless both pass."""
    args = harnesses.arguments(harness)
    theirs = _theirs(args)
    try:
        expected = harness.dyn_fun(*args)
        if not _passes(theirs(lambda *given: harness.dyn_fun(*given)), args, expected):
            return None
        for options in WAYS.values():  # what is imported and remembered once is not counted
            made = load(write(harness.dyn_fun, tuple(args), {}, options))
            if harnesses.bits(made(*args))[1] != harnesses.bits(expected)[1]:
                return None
    except Exception:  # noqa: BLE001 - whatever one of them cannot write or run
        return None
    found = {"theirs": _timed(theirs, harness.dyn_fun, runs)}
    for way, options in WAYS.items():

        def ours(function: Callable[..., Any], options: SourceOptions = options) -> Any:
            return write(function, tuple(args), {}, options)

        found[way] = _timed(ours, harness.dyn_fun, runs)
    return found


def main() -> None:
    """Print the median milliseconds of each, and of the ratios."""
    parser = argparse.ArgumentParser(prog="python -m tools.perf.peer", description=__doc__)
    parser.add_argument("--every", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    every = harnesses.sample(harnesses.load_harnesses(), chosen.every)
    found = [times for harness in every if (times := compared(harness, chosen.runs)) is not None]
    print(f"{len(found)} of {len(every)} harnesses pass in both, JAX {jax.__version__}")
    theirs = statistics.median(times["theirs"] for times in found)
    print(f"brainstate: {theirs:.1f} ms")
    for way in WAYS:
        ours = statistics.median(times[way] for times in found)
        ratio = statistics.median(times[way] / times["theirs"] for times in found)
        print(f"{way}: {ours:.1f} ms, {ratio:.2f} × brainstate's")


if __name__ == "__main__":
    main()
