"""JX444: make the argument of a jitted function static."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx444_argument_not_static.rule import NotStatic
from jaxsight.rules.text.expressions import FunctionNode, dotted


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the definition with a decorator that names the static argument."""
    data = context.finding.data
    if not isinstance(data, NotStatic):
        return
    name = data.function.rpartition(".")[2]
    for chunk in context.elsewhere():
        for node in ast.walk(chunk.tree):
            if isinstance(node, FunctionNode) and node.name == name:
                for decorator in node.decorator_list:
                    if chunk.called(decorator) == "jax.jit" and dotted(decorator):
                        static = (
                            "static_argnums=0" if data.parameter == "self" else
                            f'static_argnames="{data.parameter}"'
                        )  # fmt: skip
                        text = f"{chunk.partial}({chunk.text(decorator)}, {static})"
                        yield Candidate(
                            f"Make `{data.parameter}` static",
                            (*chunk.functools_import(), chunk.replace(decorator, text)),
                            same=False,
                        )
                        return


REMEDY = Remedy("a static argument (unsafe)", candidates)
