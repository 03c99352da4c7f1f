"""JX102 and JX103: what XLA would fold is computed once before, kept from it by a barrier, or its constant becomes an argument."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.engine.fixes import jx101
from jaxsight.engine.fixes.asked import Asked, Candidate

CODES = ("JX102", "JX103")
_SIZE = re.compile(r"[\d.]+ (?P<unit>bytes|[KMG]iB)")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """What is small is computed once, when the module is imported; what is large behind a barrier, which only hides it from the compiler."""
    size = _SIZE.search(asked.finding.message)
    if size is None or size["unit"] in ("bytes", "KiB"):
        yield from _once(asked)
    yield from _barrier(asked)
    yield from jx101.by_jnp(asked)
    yield from jx101.to_argument(asked)


def _once(asked: Asked) -> Iterator[Candidate]:
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        called = asked.called(call.func)
        if not called.startswith("jax."):
            continue
        of = f"_of_{call.args[0].id}" if call.args and isinstance(call.args[0], ast.Name) else ""
        name = asked.fresh(f"{called.rpartition('.')[2]}{of}".upper())
        yield from asked.hoisted(call, name, f"Compute it once, as `{name}`")
        return


def _barrier(asked: Asked) -> Iterator[Candidate]:
    told: set[ast.expr] = set()
    operands: list[ast.expr] = list(jx101.globals_in(asked))
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        operands += call.args[:1]
    for operand in operands:
        if operand in told or isinstance(operand, ast.Constant):
            continue
        told.add(operand)
        shown = " ".join(asked.text(operand).split())
        shown = shown if len(shown) <= 30 else shown[:27] + "…"
        yield Candidate(
            f"Put an `optimization_barrier` around `{shown}`",
            (
                *asked.jax_import(),
                asked.replace(operand, f"{asked.lax}.optimization_barrier({asked.text(operand)})"),
            ),
        )
