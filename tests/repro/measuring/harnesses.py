"""JAX's own harnesses: captured, written as a file, loaded in a fresh process: the same program?

Each is taken as it is, jitted, differentiated and vectorized, where that can be traced.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
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

from jaxsight.interpreters.same.comparison import same_jaxpr
from jaxsight.repro.compat import pickling
from jaxsight.repro.emit.from_case import of_execution
from jaxsight.repro.emit.repro_file import About
from jaxsight.repro.environment import current
from jaxsight.repro.failures import Failure
from jaxsight.repro.values import value_of
from jaxsight.sourcerizer.primal import primal
from tests.sourcerizer.harnesses import arguments, load_harnesses, sample

BATCH = 40

SAME = ("same", "same through calls", "same without rules")
"""The outcomes of the same program; rules of derivatives that nothing calls may be left out."""

Function = Callable[..., Any]


def main(options: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="harnesses", description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--most", type=int, default=1 << 30, help="stop after so many")
    parser.add_argument("--batch", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parsed = parser.parse_args(options)
    if os.environ.get("PYTHONHASHSEED") != "0":  # harnesses are made of sets: the same in each
        command = [sys.executable, "-m", "tests.repro", "harnesses", *options]
        variables = {**os.environ, "PYTHONHASHSEED": "0"}
        return subprocess.run(command, env=variables, check=False).returncode
    warnings.simplefilter("ignore")
    if parsed.batch:
        compare(parsed.every, *parsed.batch, parsed.folder)
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
        for position, form, name, function, leaves in programs(every, start, stop):
            try:
                emit(function, leaves, folder / f"{position}_{form}.py")
            except Untraceable:
                yield form, "untraceable", name, ""
            except Exception as error:  # noqa: BLE001 - counted
                yield form, "not written", name, f"{type(error).__name__}: {error}"[:300]
        command = [sys.executable, "-m", "tests.repro", "harnesses", "--every", str(every)]
        command += ["--batch", str(start), str(stop), "--folder", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            form, outcome, name, detail = json.loads(line)
            yield form, outcome, name, detail
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
    data = pickling.dumps({}, (equation.primitive, equation.params))
    about = About(Failure("exception", message="none"), current())
    of_execution(data, [value_of(leaf) for leaf in leaves], about).save(file)


def compare(every: int, start: int, stop: int, folder: Path) -> None:
    """Load the files of a batch, and print whether each is the program that it was written of."""
    import runpy

    for position, form, name, function, leaves in programs(every, start, stop):
        file = folder / f"{position}_{form}.py"
        if not file.exists():
            continue
        try:
            module = runpy.run_path(str(file), run_name="repro")
            theirs = jax.make_jaxpr(module["main"])(*module["inputs"]())
            equation = traced(function, leaves)
            ours = jax.make_jaxpr(lambda *x, e=equation: e.primitive.bind(*x, **e.params))(*leaves)
            strict = same_jaxpr(ours, theirs)
            loose = strict and same_jaxpr(ours, theirs, through_jits=True)
            if loose and same_jaxpr(primal(ours), primal(theirs), through_jits=True) is None:
                print(json.dumps([form, SAME[2], name, ""]), flush=True)
                continue
        except Exception as error:  # noqa: BLE001 - counted
            words = f"{type(error).__name__}: {error}"[:300]
            print(json.dumps([form, "not loaded", name, words]), flush=True)
            continue
        outcome = "same" if strict is None else "other" if loose else "same through calls"
        print(
            json.dumps([form, outcome, name, " ".join(str(loose or "").split())[:300]]), flush=True
        )
