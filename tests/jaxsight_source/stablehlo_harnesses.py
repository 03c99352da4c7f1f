"""JAX's primitive harnesses: exported, read from StableHLO, written, and lowered again.

`python -m tests.jaxsight_source.stablehlo_harnesses --every 20` takes each 20th (`--offset K` those
after the K-th), prints those that fail by operation, and how many have the same StableHLO and bits.
"""

from __future__ import annotations

import argparse
import collections
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import export
from jax.extend.core import jaxpr_as_fun

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.stablehlo.program import UnreadableProgram
from jaxsight_source.stablehlo.proof import prove
from jaxsight_source.stablehlo.reading import read
from jaxsight_source.written import load
from tests.jaxsight_source.harnesses import arguments, bits, load_harnesses, sample


@dataclass(frozen=True, slots=True)
class Trip:
    """`stage` is where it ended: `unexportable`, `read`, `write`, `text`, `bits`; or `ok`."""

    name: str
    stage: str
    operation: str = ""
    detail: str = ""


def trip(harness: Any, style: str = "lax", portable: bool = True) -> Trip:
    """Export a harness, write it from its StableHLO, and compare. Never raises."""
    name = harness.fullname
    try:
        args = tuple(arguments(harness))
        function = jax.jit(harness.dyn_fun)
        exported = export.export(function)(*args)
        expected = function(*args)
    except Exception as error:  # noqa: BLE001 - what JAX itself cannot export or run
        return Trip(name, "unexportable", "", f"{type(error).__name__}: {error}"[:200])
    try:
        lowered = "" if portable else function.lower(*args).as_text()
        artifact = lowered or exported.mlir_module_serialized
        program = read(artifact, readable=style == "pretty")
    except UnreadableProgram as error:
        return Trip(name, "read", error.operation, error.why)
    except Exception as error:  # noqa: BLE001 - counted
        return Trip(name, "read", "", "".join(traceback.format_exception(error)[-4:]))
    structs = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in program.jaxpr.in_avals)
    arrays = map(jnp.asarray, jax.tree.leaves(args))  # 32-bit, as they were exported
    leaves = [one for place, one in enumerate(arrays) if place in exported.module_kept_var_idx]
    with program.types():
        try:
            flat = jaxpr_as_fun(program.jaxpr)
            written = write(flat, structs, {}, SourceOptions(style, program.name, run=False))
            made = load(written)
        except Exception as error:  # noqa: BLE001 - counted
            return Trip(name, "write", "", f"{type(error).__name__}: {error}"[:300])
        try:
            difference = prove(artifact, program, made).difference
            found = jax.jit(made)(*leaves)
        except Exception as error:  # noqa: BLE001 - counted
            return Trip(name, "text", "", f"{type(error).__name__}: {error}"[:300])
    if difference:
        return Trip(name, "text", difference.partition("(")[0].rpartition(" ")[2], difference)
    if _arrays(found) != _arrays(expected):
        return Trip(name, "bits")
    return Trip(name, "ok")


def _arrays(value: Any) -> list[Any]:
    """Return the bytes of each array; of keys, those of their data."""
    return [leaf[-1] if isinstance(leaf[-1], bytes) else leaf[1][-1] for leaf in bits(value)[1]]


def report(trips: Sequence[Trip]) -> str:
    """Return failures by operation, and the counts."""
    stages = collections.Counter(one.stage for one in trips)
    asked = len(trips) - stages["unexportable"]
    failed = [one for one in trips if one.stage not in ("ok", "unexportable")]
    lines = [f"{one.stage:6} {one.operation:30} {one.name}: {one.detail}" for one in failed]
    lines += [
        f"{count:5} {operation or '(none)'}"
        for operation, count in collections.Counter(one.operation for one in failed).most_common()
    ]
    same = stages["ok"] + stages["bits"]
    lines.append(
        f"jax {jax.__version__}: {same} of {asked} have the same StableHLO "
        f"({same / max(asked, 1):.1%}), {stages['ok']} the same bits; {dict(stages)}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--count", type=int, help="at most that many")
    parser.add_argument("--group")
    parser.add_argument("--style", choices=["lax", "pretty"], default="lax")
    parser.add_argument("--text", action="store_true", help="the lowered text, not the artifact")
    given = parser.parse_args()
    harnesses = load_harnesses()
    if given.group:
        harnesses = [h for h in harnesses if h.group_name == given.group]
    chosen = sample(harnesses[given.offset :], given.every)[: given.count]
    trips = []
    for position, harness in enumerate(chosen):
        one = trip(harness, given.style, not given.text)
        trips.append(one)
        if one.stage not in ("ok", "unexportable"):
            print(
                f"{position}/{len(chosen)} {one.stage} {one.operation} {one.name}: {one.detail}",
                flush=True,
            )
    print(report(trips), file=sys.stdout)


if __name__ == "__main__":
    main()
