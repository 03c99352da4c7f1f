"""The templates of the generator: functions that read like the programs they stand for.

A template is Python that is read, never run. What is lowercase is the program. What is uppercase is
decided when a program is written: `N = size(2, 8)` draws a number, and each `N` in the program, also
inside of names (`scatter_KIND`) and strings, is replaced. So are `if` and `for` over such values.

    @template("scaled sum", "reductions")
    def scaled_KIND(x: F[S, N], weights: F[N]):
        "Take the KIND of scaled rows."
        S, N = shape(0, 2), size(2, 16)
        KIND = choose("sum", "mean")
        y: F[S] = jnp.KIND(mapped(x) * weights, axis=-1)
        return more(y)

Annotations are the types of parameters (all of them are drawn from a seed) and of values that a
hole such as `mapped` or `more` continues with; of these only the rank matters. A parameter or an
assignment that nothing reads is left out. Whether a program is a good one is decided by running it.

| written | is |
|---|---|
| `F`, `W`, `INT`, `CPX`, `BOOL`, `INDEX`, `KEY` | a dtype of the program: any float, `float32` or `float64`, integers, complex numbers, booleans, `int32` or `int64`, a PRNG key; more are assigned: `D = dtype("int8")` |
| `F[S, N]`, `F[N, "positive"]`, `INDEX[N, below(9)]` | an array of that shape, with the rule of its values (`program.Array`) |
| `F[_, _]` | a value of that rank |
| `choose(a, b)` | one of these |
| `chance(0.5)` | whether this happens |
| `size`, `shape`, `between`, `sample` | numbers, as `choices.Choices` draws them |
| `mapped(x, 2)` | up to so many elementwise functions of `x`, one at least |
| `mixed(x, y)` | an expression of values of one dtype, whose shapes broadcast |
| `smooth(x, y)` | the same, with a derivative everywhere |
| `prepared(x)` | `x`, or a value of the same shape made from it |
| `reduced(x, axis=A)` | a reduction over an axis, or all of them |
| `moved`, `scanned`, `normalised`, `compared` | `x` with its elements moved, its cumulative forms, … |
| `number(x)`, `number(x, D)` | `x` as floating-point numbers |
| `more(x)`, `more(x, y)` | some further random steps, `y` broadcasts with `x` |
| `with module:` | what stands above the function |
| `label("…")` | a label of the program |
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

Snippet = TypeVar("Snippet", bound=Callable[..., Any])


@dataclass(frozen=True)
class Template:
    """A family of programs.

    Attributes:
        name: identifies the family; no family is in two splits.
        category: one of `spec.CATEGORIES`.
        snippet: the function that stands for its programs.
        weight: how often it is chosen, relative to the others of its category.
    """

    name: str
    category: str
    snippet: Callable[..., Any]
    weight: int = 2

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The snippet as it is written."""
        text = textwrap.dedent(inspect.getsource(self.snippet))
        tree = ast.parse(text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        return tree


TEMPLATES: dict[str, Template] = {}


def template(name: str, category: str, weight: int = 2) -> Callable[[Snippet], Snippet]:
    """Register a function as the template `name` of a category."""

    def registered(snippet: Snippet) -> Snippet:
        assert name not in TEMPLATES, f"two templates named {name}"
        TEMPLATES[name] = Template(name, category, snippet, weight)
        return snippet

    return registered
