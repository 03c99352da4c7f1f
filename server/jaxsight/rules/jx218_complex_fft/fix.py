"""Fix JX218: transform real numbers by `rfft`, and back by `irfft`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate
from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.engine.text import Edit, Range

_MODULE = "jax.numpy.fft."
_FORWARD = ("fft", "fft2", "fftn")
_INVERSE = ("ifft", "ifft2", "ifftn")


def candidates(asked: Asked) -> Iterator[Candidate]:
    """Yield `rfft` for `fft`, and `irfft(…)` for `ifft(…).real`."""
    for call in asked.find(ast.Call):
        assert isinstance(call, ast.Call)
        name = asked.called(call.func).removeprefix(_MODULE)
        if name in _FORWARD:
            yield Candidate(f"Use `r{name}`", _renamed(asked, call))
            return
        if name in _INVERSE and len(call.args) == 1 and not call.keywords:
            yield from _pair(asked, call, name)
            return


def _renamed(asked: Asked, call: ast.Call) -> tuple[Edit, ...]:
    """Return the edit that calls the function for real numbers."""
    if not isinstance(call.func, ast.Attribute):
        return ()
    name = call.func.attr
    real = f"ir{name[1:]}" if name.startswith("i") else f"r{name}"
    return (asked.replace(call.func, f"{asked.text(call.func.value)}.{real}"),)


def _pair(asked: Asked, call: ast.Call, name: str) -> Iterator[Candidate]:
    """Yield the inverse transform of real ones, where all of them are in its argument."""
    seen, outer = asked.seen(call), asked.parents.get(call)
    if isinstance(outer, ast.Attribute) and outer.attr == "real":
        whole: ast.expr = outer
    elif isinstance(outer, ast.Call) and asked.called(outer.func) == "jax.numpy.real":
        whole = outer
    else:
        return
    inner = [
        node
        for node in ast.walk(call.args[0])
        if isinstance(node, ast.Call) and asked.called(node.func).removeprefix(_MODULE) in _FORWARD
    ]
    if not inner or seen is None or not seen.shape or seen.shape[-1] % 2:
        return
    edits = [edit for node in (call, *inner) for edit in _renamed(asked, node)]
    # The transform is real by itself: what takes its real part is dropped.
    around, within = asked.range(whole), asked.range(call)
    before = Edit(Range(around.start, within.start), "")
    after = Edit(Range(within.end, around.end), "")
    yield Candidate(f"Use `r{name[1:]}` and `ir{name[1:]}`", (*edits, before, after))


REMEDY = Remedy("`rfft` and `irfft` for real numbers", candidates)
