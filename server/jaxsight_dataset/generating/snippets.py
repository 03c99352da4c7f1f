"""The templates of the generator: functions that read like the programs they stand for.

A template is Python that is read, never run. What is lowercase is the program. What is uppercase
is decided when a program is written: `N = size(2, 8)` draws a number, and each `N` in the
program, also inside names (`scatter_KIND`) and strings, is replaced. So are `if` and `for` over
such values.

    @template("scaled sum", "reductions")
    def scaled_KIND(x: F[S, N], weights: F[N]):
        "Take the KIND of scaled rows."
        S, N, KIND = shape(0, 2), size(2, 16), choose("sum", "mean")
        y: F[S] = jnp.KIND(mapped(x) * weights, axis=-1)
        return more(y)

Annotations are the types of parameters, and of values that a hole such as `mapped` or `more` goes
on with; of these only the rank matters. What nothing reads is left out. Whether a program is a
good one is decided by running it.

* `F`, `W`, `INT`, `CPX`, `BOOL`, `INDEX`, `KEY` are dtypes of the program: any float, a wide one,
  integers, complex numbers, booleans, indices, PRNG keys; `F32`, `I32`, … are these;
* `F[S, N]` is an array of that shape, `F[N, "unit"]` and `INDEX[N, below(9)]` with a rule of
  values (`program.Array`);
* `choose`, `chance`, `between`, `sample`, `size`, `shape`, `dtype` draw (`choices.Draws`);
* `mapped(x, 2)` is a function of `x`, more complex where the number is larger, `prepared(x)` is
  `x` or a value of the same shape made from it;
* `mixed(x, y)`, `binary(x, y)` and, with a derivative everywhere, `smooth(x, y)` are expressions
  of values of one dtype whose shapes broadcast;
* `reduced(x, axis=A)`, `moved`, `scanned`, `normalised`, `activated`, `compared`, `number(x, D)`
  are steps of their kinds (`steps.Steps`);
* `formula(LINES)` is the last of some lines of a snippet, after the assignments before it; tables
  of them are uppercase names of the module;
* `return more(x, y)` returns `x`, what is made of it, or two values; `y` broadcasts with `x`;
* `with module:` is what stands above the function, `label("…")` a label of the program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import FunctionType

from jaxsight.files import reading


@dataclass(frozen=True, slots=True)
class Template:
    """A family of programs.

    Attributes:
        name: identifies the family; no family is in two splits.
        category: one of `spec.CATEGORIES`.
        snippet: the function that stands for its programs, as it is written.
        tables: the uppercase names of its module, such as a table of formulas.
        weight: how often it is chosen, relative to the others of its category.
    """

    name: str
    category: str
    snippet: ast.FunctionDef
    tables: dict[str, object]
    weight: int = 2


TEMPLATES: dict[str, Template] = {}
"""By their names."""


def template(name: str, category: str, weight: int = 2) -> Callable[[FunctionType], FunctionType]:
    """Register a function as the template `name` of a category."""

    def registered(function: FunctionType) -> FunctionType:
        assert name not in TEMPLATES, f"two templates named {name}"
        code = function.__code__
        snippet = _functions(code.co_filename)[code.co_firstlineno]
        tables = {key: it for key, it in function.__globals__.items() if key.isupper()}
        TEMPLATES[name] = Template(name, category, snippet, tables, weight)
        return function

    return registered


@cache
def _functions(file: str) -> dict[int, ast.FunctionDef]:
    """Return the functions of a module by the lines of their first decorators."""
    module = ast.parse(reading.source(file))
    return {
        node.decorator_list[0].lineno: node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    }
