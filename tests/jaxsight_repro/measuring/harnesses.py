"""JAX's own harnesses: captured, written as a file, loaded in a fresh process: the same program?

Each is taken as it is, jitted, differentiated and vectorized, where that can be traced.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_repro import meshes
from jaxsight_repro.compat import pickling
from jaxsight_repro.emit.from_case import of_execution
from jaxsight_repro.emit.repro_file import About
from jaxsight_repro.environment import current
from jaxsight_repro.failures import RunFailure
from jaxsight_repro.values import value_of
from jaxsight_source.jaxprs.same.comparison import same_jaxpr
from jaxsight_source.readable import primal
from tests.jaxsight_source.harnesses import arguments, load_harnesses, sample

BATCH = 40

SAME = ("same", "same through calls", "same without rules")
"""The outcomes of the same program; rules of derivatives that nothing calls may be left out."""

Function = Callable[..., Any]


def main(options: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="harnesses", description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most", type=int, default=1 << 30, help="stop after so many")
    parser.add_argument("--compare", type=Path, help=argparse.SUPPRESS)
    parsed = parser.parse_args(options)
    warnings.simplefilter("ignore")
    if parsed.compare:
        compare(parsed.compare)
        return 0
    totals: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    count = min(len(sample(load_harnesses(), parsed.every)), parsed.most)
    for start in range(0, count, BATCH):
        for form, outcome, name, detail in _batch(parsed.every, start, min(start + BATCH, count)):
            totals[form][outcome] += 1
            if outcome not in (SAME[0], "untraceable"):
                print(f"{form} {outcome} {name}: {detail}", flush=True)
    print(f"jax {jax.__version__}, {count} harnesses")
    print("| form | traced | same | through calls | without rules | other |")
    print("| - | -: | -: | -: | -: | -: |")
    bad = 0
    for form in FORMS:
        counted = totals[form]
        traced = sum(counted.values()) - counted["untraceable"]
        columns = [counted[outcome] for outcome in SAME]
        other = traced - sum(columns)
        bad += other
        print("|", " | ".join(map(str, [form, traced, *columns, other])), "|")
    return 1 if bad else 0


def _batch(every: int, start: int, stop: int) -> Iterator[tuple[str, str, str, str]]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = {}
        for position, form, name, function, leaves in programs(every, start, stop):
            names[f"{position}_{form}"] = name
            try:
                emit(function, leaves, folder / f"{position}_{form}.py")
            except Untraceable:
                yield form, "untraceable", name, ""
            except Exception as error:  # noqa: BLE001 - counted
                yield form, "not written", name, f"{type(error).__name__}: {error}"[:300]
        command = [
            sys.executable,
            "-m",
            "tests.jaxsight_repro",
            "harnesses",
            "--compare",
            str(folder),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            stem, outcome, detail = json.loads(line)
            yield stem.partition("_")[2], outcome, names[stem], detail
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)


class Untraceable(Exception):
    """JAX itself cannot trace the function."""


def programs(
    every: int, start: int, stop: int
) -> Iterator[tuple[int, str, str, Function, list[Any]]]:
    for position, harness in enumerate(sample(load_harnesses(), every)[start:stop], start):
        try:
            args = arguments(harness)
        except Exception:  # noqa: BLE001, S112 - it makes no arguments here
            continue
        for form, make in FORMS.items():
            function, leaves = make(harness.dyn_fun, args)
            yield position, form, harness.fullname, function, leaves


def _plain(function: Function, args: Sequence[Any]) -> tuple[Function, list[Any]]:
    leaves, tree = jax.tree.flatten(list(args))
    return lambda *leaves: function(*jax.tree.unflatten(tree, leaves)), leaves


def _jit(function: Function, args: Sequence[Any]) -> tuple[Function, list[Any]]:
    flat, leaves = _plain(function, args)
    return jax.jit(flat), leaves


def _grad(function: Function, args: Sequence[Any]) -> tuple[Function, list[Any]]:
    flat, leaves = _plain(function, args)
    floats = [index for index, leaf in enumerate(leaves) if _is_float(leaf)]

    def loss(*leaves: Any) -> Any:
        results = [leaf for leaf in jax.tree.leaves(flat(*leaves)) if _is_float(leaf)]
        return sum(jnp.sum(result).astype(np.float32) for result in results)

    return jax.grad(loss, argnums=floats), leaves


def _vmap(function: Function, args: Sequence[Any]) -> tuple[Function, list[Any]]:
    flat, leaves = _plain(function, args)
    try:
        return jax.vmap(flat), [jnp.stack([jnp.asarray(leaf)] * 2) for leaf in leaves]
    except (TypeError, ValueError):
        return _refused, leaves


def _refused(*_: Any) -> Any:
    raise TypeError("its arguments cannot be stacked")


def _is_float(leaf: Any) -> bool:
    return bool(jnp.issubdtype(getattr(leaf, "dtype", np.int32), np.floating))


FORMS = {"plain": _plain, "jit": _jit, "grad": _grad, "vmap": _vmap}


def traced(function: Function, leaves: Sequence[Any]) -> Any:
    """The equation of the jitted function, as JAX executes it.

    Raises:
        Untraceable: there is none.
    """
    try:
        program = jax.make_jaxpr(jax.jit(lambda *leaves: function(*leaves)))(*leaves)
    except Exception as error:
        raise Untraceable(str(error)) from error
    equations = list(program.eqns)
    if len(equations) != 1 or len(equations[0].invars) != len(leaves):
        raise Untraceable("arguments that are no arrays")
    return equations[0]


def emit(function: Function, leaves: Sequence[Any], file: Path) -> None:
    """Capture and write a program, as a case in a folder is written."""
    equation = traced(function, leaves)
    data = pickling.dumps({}, meshes.current(), (equation.primitive, equation.params))
    file.with_suffix(".program").write_bytes(data)
    about = About(RunFailure("exception", message="none"), current())
    of_execution(data, [value_of(leaf) for leaf in leaves], about).save(file)


def compare(folder: Path) -> None:
    """Load the files of a batch, and print whether each is the program that it was written of.

    That is read from the file beside: the harnesses are in another order in each process.
    """
    import runpy

    for file in sorted(folder.glob("*.py")):
        try:
            module = runpy.run_path(str(file), run_name="repro")
            inputs = module["inputs"]()
            theirs = jax.make_jaxpr(module["main"])(*inputs)
            _, _, (primitive, params) = pickling.load_all(file.with_suffix(".program").read_bytes())
            ours = jax.make_jaxpr(lambda *x, p=primitive, of=params: p.bind(*x, **of))(*inputs)
            outcome, detail = _compared(ours, theirs)
        except Exception as error:  # noqa: BLE001 - counted
            outcome, detail = "not loaded", f"{type(error).__name__}: {error}"
        print(json.dumps([file.stem, outcome, " ".join(detail.split())[:300]]), flush=True)


def _compared(ours: Any, theirs: Any) -> tuple[str, str]:
    """The outcome, and the first difference."""
    if same_jaxpr(ours, theirs) is None:
        return SAME[0], ""
    difference = same_jaxpr(ours, theirs, through_jits=True)
    if difference is None:
        return SAME[1], ""
    if same_jaxpr(primal(ours), primal(theirs), through_jits=True) is None:
        return SAME[2], str(difference)
    return "other", str(difference)
