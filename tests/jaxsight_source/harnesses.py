"""JAX's own primitive harnesses through the sourcerizer: written, executed in a fresh module,
compared.

`python -m tests.jaxsight_source.harnesses` runs all of them and prints a table by group; `--every N`
takes each N-th, `--group NAME` one group, `--x64` turns 64 bits on.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.api import write, write_program
from jaxsight_source.calls.signature import bind
from jaxsight_source.compat.staging import opened
from jaxsight_source.jaxprs.base import room_for_nesting
from jaxsight_source.jaxprs.same.difference import Difference
from jaxsight_source.options import SourceOptions
from jaxsight_source.programs.bare import of_jaxpr
from jaxsight_source.readable import primal, readable
from jaxsight_source.written import Written, load


@dataclass(frozen=True, slots=True)
class Outcome:
    """`stage` is where it went wrong: `write`, `load`, `check`, `run`, `values`; `ok` when it did
    not.
    """

    group: str
    name: str
    stage: str
    detail: str = ""
    equations: int = 0
    bound: tuple[str, ...] = ()


def load_harnesses() -> list[Any]:
    """Those that JAX says run on CPUs. Harnesses depend on the setting of x64 at import."""
    argv, sys.argv = sys.argv, sys.argv[:1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jax._src.internal_test_util import test_harnesses  # what JAX tests its exporters with
    sys.argv = argv
    return [harness for harness in test_harnesses.all_harnesses if harness.filter("cpu")]


def bits(value: Any) -> Any:
    """Type, weak type, shape and bytes of each array."""
    leaves, tree = jax.tree.flatten(value)
    return tree, [_leaf_bits(leaf) for leaf in leaves]


def _leaf_bits(leaf: Any) -> Any:
    weak = getattr(leaf, "weak_type", False)
    if jax.dtypes.issubdtype(getattr(leaf, "dtype", None), jax.dtypes.prng_key):
        return (str(leaf.dtype), _leaf_bits(jax.random.key_data(leaf)))
    found = np.asarray(leaf)
    return (str(found.dtype), weak, found.shape, found.tobytes())


def arguments(harness: Any) -> list[Any]:
    """The harness's arguments, the same each time."""
    return list(harness.dyn_args_maker(np.random.RandomState(0)))


def check(
    written: Written,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Difference | None:
    """Trace a function again, and compare it with a written module's.

    Return the first difference, or None if they are the same program.
    """
    call = bind(function, args, kwargs)
    values = [argument.value for argument in call.arguments]
    options = written.options
    with room_for_nesting():
        ours: object = jax.make_jaxpr(call.flat)(*values)
        theirs = jax.make_jaxpr(replace(call, function=load(written)).flat)(*values)
        if options.derivatives == "primal":
            ours = primal(ours)
        if options.style == "pretty":
            ours = readable(ours)
        return replace(written, program=opened(ours)).differs(theirs)


def round_trip(harness: Any, options: SourceOptions | None = None, execute: bool = True) -> Outcome:
    """Never raises."""
    group, name = harness.group_name, harness.fullname

    def gone(stage: str, error: object) -> Outcome:
        text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
        return Outcome(group, name, stage, " ".join(text.split())[:300])

    try:
        args = arguments(harness)
        jax.make_jaxpr(harness.dyn_fun)(*args)
    except Exception as error:  # noqa: BLE001 - a harness that JAX itself cannot trace
        return gone("untraceable", error)
    try:
        written = write(harness.dyn_fun, tuple(args), {}, options or SourceOptions(run=False))
    except Exception as error:  # noqa: BLE001 - counted
        return gone("write", error)
    try:
        made = load(written)
    except Exception as error:  # noqa: BLE001 - counted
        return gone("load", error)
    try:
        difference = check(written, harness.dyn_fun, tuple(args), {})
    except Exception as error:  # noqa: BLE001 - counted
        return gone("check", error)
    if difference is not None:
        return gone("same", difference)
    if execute:
        try:
            expected = harness.dyn_fun(*args)
        except Exception as error:  # noqa: BLE001 - what the original cannot run, the copy need not
            return gone("unrunnable", error)
        try:
            found = made(*args)
        except Exception as error:  # noqa: BLE001 - counted
            return gone("run", error)
        if bits(found)[1] != bits(expected)[1]:
            return gone("values", "other bits")
    return Outcome(group, name, "ok", "", written.equations, written.bound)


def from_jaxpr(harness: Any) -> Outcome:
    """Write the jaxpr of a harness, without its function. Never raises."""
    group, name = harness.group_name, harness.fullname

    def gone(stage: str, error: object) -> Outcome:
        return Outcome(group, name, stage, " ".join(repr(error).split())[:300])

    args = arguments(harness)
    leaves = jax.tree.leaves(args)
    try:
        jaxpr = jax.make_jaxpr(harness.dyn_fun)(*args)
    except Exception as error:  # noqa: BLE001 - a harness that JAX itself cannot trace
        return gone("untraceable", error)
    try:
        written = write_program(of_jaxpr(jaxpr))
        made = load(written)
        difference = written.differs(jax.make_jaxpr(made)(*leaves))
    except Exception as error:  # noqa: BLE001 - counted
        return gone("write", error)
    if difference is not None:
        return gone("same", difference)
    try:
        expected = jax.core.eval_jaxpr(opened(jaxpr).jaxpr, opened(jaxpr).consts, *leaves)
    except Exception as error:  # noqa: BLE001 - what the original cannot run, the copy need not
        return gone("unrunnable", error)
    try:
        found = jax.tree.leaves(made(*leaves))
    except Exception as error:  # noqa: BLE001 - counted
        return gone("run", error)
    if bits(found) != bits(list(map(jnp.asarray, expected))):
        return gone("values", "other bits")
    return Outcome(group, name, "ok", "", written.equations, written.bound)


def sample(harnesses: list[Any], every: int) -> list[Any]:
    """Each `every`-th of a shuffled list that is the same each time, and one at least of each
    group.
    """
    shuffled = list(harnesses)
    random.Random(0).shuffle(shuffled)
    chosen = shuffled[::every]
    seen = {harness.group_name for harness in chosen}
    for harness in shuffled:
        if harness.group_name not in seen:
            seen.add(harness.group_name)
            chosen.append(harness)
    return chosen


def table(outcomes: Iterable[Outcome]) -> Iterator[str]:
    groups: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        groups[outcome.group][outcome.stage] += 1
    for group in sorted(groups):
        counted = groups[group]
        good = counted["ok"]
        rest = " ".join(f"{stage}:{n}" for stage, n in counted.items() if stage != "ok")
        yield f"{group:45} {good:5}/{sum(counted.values()):5} {rest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--group")
    parser.add_argument("--x64", action="store_true")
    parser.add_argument("--style", choices=["lax", "pretty"], default="lax")
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("--jaxprs", action="store_true", help="write jaxprs, not functions")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", given.x64)
    harnesses = load_harnesses()
    if given.group:
        harnesses = [h for h in harnesses if h.group_name == given.group]
    options = SourceOptions(style=given.style, run=False)
    outcomes = []
    for harness in sample(harnesses, given.every):
        if given.jaxprs:
            outcome = from_jaxpr(harness)
        else:
            outcome = round_trip(harness, options, execute=not given.no_run)
        outcomes.append(outcome)
        if outcome.stage != "ok":
            print(f"{outcome.stage:11} {outcome.name}: {outcome.detail}", flush=True)
    print("\n".join(table(outcomes)))
    stages = collections.Counter(outcome.stage for outcome in outcomes)
    bound = collections.Counter(name for outcome in outcomes for name in outcome.bound)
    equations = sum(outcome.equations for outcome in outcomes)
    print(f"jax {jax.__version__}, x64 {given.x64}: {dict(stages)}")
    print(f"{equations} equations, bound: {dict(bound)}")


if __name__ == "__main__":
    main()
