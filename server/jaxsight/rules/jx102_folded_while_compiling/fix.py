"""JX102 and JX103: what XLA would fold is computed once before, kept from it, or its constant becomes an argument.

JX102 is kept from XLA by the option that JAX documents for it (jax#39786), which needs a `jax.jit` of the user's; JX103 by a barrier.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.engine.fixes import effects
from jaxsight.engine.fixes.asked import Asked, Candidate, keyword
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Position, Range
from jaxsight.rules.jx101_captured_constant import fix as jx101

_PASSES = "xla_disable_hlo_passes"
_OPTION = f'{{"{_PASSES}": "constant_folding"}}'
_SIZE = re.compile(r"[\d.]+ (?P<unit>B|[KMG]iB)")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """What is small is computed once, when the module is imported; what is large only when the function runs."""
    yield from once(asked)
    yield from _unfolded(asked.of_subject())
    yield from jx101.by_jnp(asked)
    yield from jx101.to_argument(asked)


def once(asked: Asked) -> Iterator[Candidate]:
    """Compute what is small before the function, when the module is imported."""
    size = _SIZE.search(asked.finding.message)
    if size is not None and size["unit"] not in ("B", "KiB"):
        return
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        called = asked.called(call.func)
        if not called.startswith("jax."):
            continue
        of = f"_of_{call.args[0].id}" if call.args and isinstance(call.args[0], ast.Name) else ""
        name = asked.fresh(f"{called.rpartition('.')[2]}{of}".upper())
        yield from asked.hoisted(call, name, f"Compute it once, as `{name}`")
        return


def _unfolded(asked: Asked) -> Iterator[Candidate]:
    """The option at the `jax.jit` that decorates the traced function: inner ones take none."""
    for decorator in asked.subject.decorator_list if asked.subject is not None else ():
        if (edits := _with_option(asked, decorator)) is not None:
            yield Candidate(
                "Compute it in each call instead of while compiling, by `compiler_options`", edits
            )


def _with_option(asked: Asked, decorator: ast.expr) -> tuple[Edit, ...] | None:
    """The edits that give a decorator the option; nothing where it is no `jax.jit`, or has options that are not written out."""
    if not isinstance(decorator, ast.Call):
        if asked.called(decorator) != "jax.jit":
            return None
        text = f"{asked.partial}({asked.text(decorator)}, compiler_options={_OPTION})"
        return (*asked.functools_import(), asked.replace(decorator, text))
    called = [asked.called(node) for node in (decorator.func, *decorator.args[:1])]
    if called[0] != "jax.jit" and called != ["functools.partial", "jax.jit"]:
        return None
    options = keyword(decorator, "compiler_options")
    if options is None:
        places = asked.arguments(decorator)
        end = asked.range(decorator).end
        last = places[-1].end if places else Position(end.line, end.column - 1)
        comma = ", " if places else ""
        return (Edit(Range(last, last), f"{comma}compiler_options={_OPTION}"),)
    match options.value:
        case ast.Dict(keys=[*keys], values=[*values]) if all(
            isinstance(key, ast.Constant) and key.value != _PASSES for key in keys
        ):
            if not values:
                return (asked.replace(options.value, _OPTION),)
            last = asked.range(values[-1]).end
            return (Edit(Range(last, last), f", {_OPTION[1:-1]}"),)
    return None


# Seconds of compiling, for what is computed in each call.
REMEDY = Remedy(
    "the expression computed once, before the function; `compiler_options` of the function's `jax.jit` (JX102); `optimization_barrier` around an operand (JX103); `jnp` in place of `np`; an argument (unsafe)",
    candidates,
    timed=True,
    trades=effects.ALL,
    costs_any=True,
)
