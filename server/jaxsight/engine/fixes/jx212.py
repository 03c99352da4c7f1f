"""JX212: a `cond` under `vmap`, which computes all branches, as a `lax.map`, which computes one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate

CODE = "JX212"


def candidates(asked: Asked) -> Iterator[Candidate]:
    """`vmap(f)(x)` as `lax.map(f, x)`, for a `vmap` without options. What is faster depends on the branches, so nobody else decides."""
    for each in asked.elsewhere():
        yield from _mapped(each)


def _mapped(asked: Asked) -> Iterator[Candidate]:
    for node in ast.walk(asked.tree):
        match node:
            case ast.Call(
                func=ast.Call(func=vmap, args=[function], keywords=[]), args=[*given], keywords=[]
            ) if given and asked.called(vmap) == "jax.vmap":
                text = asked.text(function)
                if len(given) == 1:
                    over = asked.text(given[0])
                else:
                    if any(isinstance(each, ast.Starred) for each in given):
                        continue
                    text = f"lambda each: {asked.operand(function)}(*each)"
                    over = f"({', '.join(map(asked.text, given))})"
                yield Candidate(
                    f"Map by `{asked.lax}.map`, one element at a time",
                    (*asked.jax_import(), asked.replace(node, f"{asked.lax}.map({text}, {over})")),
                    safe=False,
                )
            case _:
                pass
