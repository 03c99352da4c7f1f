"""Print jaxprs, and say what their inner ones were traced for, of any supported version of JAX.

This applies to JAX 0.8 to 0.12.

Private API used: `debug_info`, the pretty printer (`core.pp_eqn`, `pp_vars`, `JaxprPpContext`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from jax._src import core
from jax._src import pretty_printer as pp

from jaxsight.meshes.compat import shardings
from jaxsight.tracer.compat.traces import StagedFunction, stage_text
from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Jaxpr
from jaxsight_source.compat.staging import is_jaxpr, open_jaxpr

Doc: TypeAlias = pp.Doc

_PAPER = 80
"""Target width of a printed jaxpr, as in JAX's own printer (jax/_src/pretty_printer.py)."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A jaxpr inside another, with its reason, the avals of its inputs, and the stages around it.

    The last entry of `inside` is the jaxpr's own stage.
    """

    staged: StagedFunction
    inputs: tuple[object, ...]
    inside: tuple[str, ...]


def reached(jaxpr: object) -> Iterator[Reached]:
    """Yield `jaxpr` and all inner jaxprs that have debug info, without duplicates."""
    opened = open_jaxpr(jaxpr)
    yield from _reached(opened, ())
    yield from reached_from(opened.eqns)


def reached_from(equations: Iterable[Equation], inside: tuple[str, ...] = ()) -> Iterator[Reached]:
    """Yield all inner jaxprs of equations inside of `inside`, without duplicates."""
    waiting = [(equation, inside) for equation in equations]
    visited: set[int] = set()
    while waiting:
        equation, around = waiting.pop()
        for part in inner_jaxprs(equation):
            if id(part.jaxpr) in visited:
                continue
            visited.add(id(part.jaxpr))
            about = part.jaxpr.debug_info
            traced_for = str(about.traced_for) if about is not None else part.name
            text = stage_text(traced_for, equation.params.get("length"), _manual_axes(equation))
            yield from _reached(part.jaxpr, (*around, text))
            waiting += [(inner_equation, (*around, text)) for inner_equation in part.jaxpr.eqns]


def _manual_axes(equation: Equation) -> tuple[str, ...] | None:
    """Return the manual axes of a `shard_map` in the order of its mesh; `None` for others."""
    axes = equation.params.get("newly_manual_axes", equation.params.get("manual_axes"))
    of = equation.params.get("mesh")
    if not isinstance(axes, frozenset) or of is None:
        return None
    return shardings.named(axis for axis in of.axis_names if axis in axes)


def _reached(opened: Jaxpr, inside: tuple[str, ...]) -> Iterator[Reached]:
    if (info := opened.debug_info) is not None:
        inputs = tuple(var.aval for var in opened.invars)
        yield Reached(StagedFunction(str(info.traced_for), str(info.func_src_info)), inputs, inside)


class EquationPrinter:
    """Prints equations like JAX, with inner jaxprs supplied by the caller.

    Names of variables are consistent across all calls.
    Lists of more than `most` variables are elided.
    """

    def __init__(self, most: int | None = None) -> None:
        self.context: Any = core.JaxprPpContext()
        self.most = most

    def variables(self, of: Sequence[Atom], *, binder: bool) -> Doc:
        return pp.nest(2, pp.group(self._joined(of, binder, "")))

    def _joined(self, of: Sequence[Atom], binder: bool, separator: str) -> Doc:
        between = pp.text(separator) + pp.group(pp.brk())
        documents = [self._variable(var, binder) for var in of[: self.most]]
        if len(documents) < len(of):
            documents.append(pp.text(f"… {len(of) - len(documents)} more"))
        return pp.join(between, documents)

    def _variable(self, var: Atom, binder: bool) -> Doc:
        name = cast(core.Var, var).pretty_print(self.context, print_dtype=True)
        typed = binder and not isinstance(var, core.Literal)
        return pp.text(f"{name}:{avals.text(var.aval)}" if typed else name)

    def equation(
        self, equation: Equation, parameters: Iterable[tuple[str, str] | tuple[str, str | Doc]]
    ) -> Doc:
        """Return the document of an equation, such as `c:f32[3] = add a b`.

        Parameters are texts, or documents for inner jaxprs; they are iterated over after the
        results have names.
        """
        bound = self.variables(equation.outvars, binder=True)
        right_side: list[Doc] = [pp.text(equation.primitive.name)]
        texts = [
            pp.text(f"{key}=") + (pp.text(value) if isinstance(value, str) else value)
            for key, value in parameters
        ]
        if texts:
            inside = pp.concat([pp.text("["), pp.brk(""), pp.join(pp.brk(), texts)])
            right_side.append(pp.group(pp.concat([pp.nest(2, inside), pp.brk(""), pp.text("]")])))
        if equation.invars:
            right_side += [pp.text(" "), self.variables(equation.invars, binder=False)]
        return pp.concat([bound, pp.text(" = "), *right_side] if equation.outvars else right_side)

    def jaxpr(self, opened: Jaxpr, equations: Iterable[Doc]) -> Doc:
        """Return the document of a jaxpr around those of its equations.

        These are iterated over after the inputs have names.
        """
        constants = self.variables(opened.constvars, binder=True)
        inputs = self.variables(opened.invars, binder=True)
        body = pp.join(pp.brk("; "), list(equations))
        inside = [
            pp.text("{ lambda "), constants, pp.text("; "), inputs, pp.text(". let"),
            pp.nest(2, pp.brk() + body), pp.brk(), pp.text("in "), self.results(opened),
        ]  # fmt: skip
        return pp.group(pp.nest(2, pp.concat(inside))) + pp.text(" }")

    def results(self, opened: Jaxpr) -> Doc:
        """Return the document of the results, such as `(a, b)`."""
        outputs = pp.nest(2, pp.group(self._joined(opened.outvars, False, ",")))
        return pp.concat(
            [pp.text("("), outputs, pp.text(",)" if len(opened.outvars) == 1 else ")")]
        )

    def same_names(self, equation: Equation, opened: Jaxpr) -> None:
        """Name inputs and outputs of a call's inner jaxpr like the outer variables, as JAX does."""
        self.context.suggest_same_var_names(opened.invars, equation.invars)
        self.context.suggest_same_var_names(opened.outvars, equation.outvars)


def line(text: str) -> Doc:
    return pp.text(text)


def one_or_listed(value: object, documents: list[Doc]) -> Doc:
    """Return the document of a parameter's jaxprs: a single one, or a list as for `cond`."""
    if is_jaxpr(value):
        return documents[0]
    inside = pp.concat([pp.text("("), pp.brk(""), pp.join(pp.brk(), documents)])
    return pp.group(pp.concat([pp.nest(2, inside), pp.brk(""), pp.text(")")]))


def mark(document: Doc, source: object) -> Doc:
    """Mark a document, so that `render` returns the lines that it occupies."""
    return pp.source_map(document, source)


def render(document: Doc) -> tuple[str, list[list[Any]]]:
    """Return the text, and for each line the sources marked in it."""
    regions: list[list[tuple[int, int, Any]]] = []
    text = document.format(width=_PAPER, use_color=False, source_map=regions)
    return text, [[source for _, _, source in line] for line in regions]


def defaults(equation: Equation) -> frozenset[str]:
    """Return the parameters of an equation to omit; JAX's printer omits most of them too."""
    return frozenset(
        key
        for key, value in equation.params.items()
        if value is None or key in _INTERNAL or (key in _DEFAULTS and _DEFAULTS[key](value))
    )


_INTERNAL = frozenset({"fwd_jaxpr_thunk", "jvp_jaxpr_fun", "jvp_jaxpr_thunk", "out_trees"})
"""Parameters with internal objects of JAX."""


def _none_given(values: Iterable[object]) -> bool:
    return all(value is None or type(value).__name__ == "UnspecifiedValue" for value in values)


_DEFAULTS: dict[str, Callable[..., bool]] = {
    "ctx_mesh": lambda value: bool(value.empty),
    "inline": lambda value: True,
    **dict.fromkeys(("compiler_options_kvs", "_split_transpose", "keep_unused"), operator.not_),
    **dict.fromkeys(("donated_invars", "linear"), lambda value: not any(value)),
    **dict.fromkeys(("in_layouts", "in_shardings", "out_layouts", "out_shardings"), _none_given),
}
