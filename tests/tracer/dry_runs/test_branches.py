"""On an unknown condition both branches run: what a real run may have otherwise is unknown."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from textwrap import indent

import jax
import jax.numpy as jnp
import pytest

from jaxsight.rewriting.survival import SurvivalRewriter
from jaxsight.tracer.dry_runs.runtime import DryRuntime
from jaxsight.tracer.dry_runs.values.unknown import Unknown, is_unknown
from tests.searches import part

CONDITIONS = (
    "c", "not c", "c and yes", "c or no", "yes and c", "c == 1", "[c][0]", "(c if yes else no)",
    "t > 0.5", "float(t) > 0.5", "bool(t)", "t.item()", "len(d) > 3", "len(d) % 2 == 0",
    "len(d) % 2", "3 < len(d)", "(len(d), 2) == (5, 2)", "n is None",
)  # fmt: skip
"""Conditions that hold with `TRUE` and not with `FALSE`, or the other way round."""
TRUE = {"c": 1, "t": 1.0, "d": [0] * 5, "n": None}
FALSE = {"c": 0, "t": 0.0, "d": [0] * 2, "n": 1}
BOUND = {
    # What two branches do, and whether the same follows from both.
    "equal numbers": ("v = 1", "v = 1", True),
    "numbers": ("v = 1", "v = 2", False),
    "equal texts": ("v = 'a'", "v = 'a'", True),
    "arrays": ("v = jnp.ones(3)", "v = jnp.zeros(3)", True),
    "arrays of other shapes": ("v = jnp.ones(3)", "v = jnp.ones(4)", False),
    "arrays of other types": ("v = jnp.ones(3)", "v = jnp.arange(3)", False),
    "numpy arrays": ("v = np.ones(3)", "v = np.zeros(3)", False),
    "trees": ("v = {'w': jnp.ones(3), 'b': (2,)}", "v = {'w': jnp.zeros(3), 'b': (2,)}", True),
    "functions": ("v = jnp.sin", "v = jnp.cos", False),
    "lambdas": ("v = lambda: 1", "v = lambda: 2", False),
    "one bound": ("v = 1", "pass", False),
    "one changed": ("pass", "u = 4", False),
    "none": ("pass", "pass", True),
    "a list": ("xs.append(1)", "pass", False),
    "lists alike": ("xs.append(1)", "xs.append(1)", True),
    "a dictionary": ("m['a'] = 1", "m['a'] = 2", False),
    "a new key": ("m['b'] = 1", "pass", False),
    "an attribute": ("box.a = 1", "box.a = 2", False),
    "attributes alike": ("box.a = jnp.ones(3)", "box.a = jnp.zeros(3)", True),
    "a list in an object": ("box.xs.append(1)", "pass", False),
    "an augmented number": ("u += 1", "u -= 1", False),
    "a deleted name": ("del u", "pass", False),
    "an inner condition": ("if c:\n    v = 1\nelse:\n    v = 2", "v = 1", False),
    "a call": ("v = g(jnp.ones(2))", "v = g(jnp.zeros(2))", True),
}
LEAVING = ("pass", "return 5", "return u", "raise ValueError", "break", "continue", "sys.exit(1)")
LOOPS = ("", "for i in range(3):", "while u < 6:", "for i in [u, u]:")
TRIED = ("", "try")
HEAD = """\
import sys
import numpy as np
class Box:
    def __init__(self):
        self.a, self.xs = 0, []
def g(x):
    if c:
        return x
    return x * 2
def run():
    yes, no, u, k = True, False, 3, 0
    xs, m, box = [], {'a': 0}, Box()
"""
STATE = """\
found = {**locals()}
return [found.get(name) for name in ('u', 'v', 'k', 'xs', 'm')] + [box.a, box.xs]
"""


def program(condition: str, first: str, second: str, loop: str = "", tried: str = "") -> str:
    text = f"if {condition}:\n{indent(first, '    ')}\nelse:\n{indent(second, '    ')}\nk = k + 1"
    if tried:
        text = f"try:\n{indent(text, '    ')}\nexcept ValueError:\n    k = 9"
    if loop:
        text = f"{loop}\n    u = u + 1\n{indent(text, '    ')}"
    body = indent(f"{text}\n{STATE}", "    ")
    return f"{HEAD}{body}\nresult = run()\n"


def real(text: str, values: Mapping[str, object]) -> object:
    """Return the result of a program; the exception that ends it."""
    names = {"jnp": jnp, "jax": jax, **values, "t": jnp.asarray(values["t"])}
    try:
        exec(compile(text, "program.py", "exec"), names)
    except (ValueError, SystemExit) as error:
        return error
    return names["result"]


def dry(text: str) -> object:
    """Return the result of a program whose data is unknown."""
    runtime = DryRuntime()
    runtime.install()
    tree = ast.parse(text)
    SurvivalRewriter().rewrite(tree)
    code = compile(tree, "program.py", "exec")
    names: dict[str, object] = {"jnp": jnp, "jax": jax}

    def run() -> tuple[()]:
        names.update(c=Unknown(), t=jnp.ones(()) * 2, d=Unknown(), n=Unknown())
        with runtime.running():
            exec(code, names)
        return ()

    jax.make_jaxpr(run)()
    return names["result"]


def type_of(value: object) -> object:
    """Return what is known of a value without a run: the types of arrays, the values of others."""
    match value:
        case jax.Array() | jax.core.Tracer():
            return value.shape, str(value.dtype)
        case dict():
            return {key: type_of(each) for key, each in value.items()}
        case tuple() | list():
            return [type_of(each) for each in value]
        case _:
            return repr(value)


def agrees(known: object, actual: object) -> bool:
    """Return whether nothing that is known of a value is otherwise in a real run."""
    if is_unknown(known):
        return True
    if isinstance(known, tuple | list) and isinstance(actual, tuple | list):
        return len(known) == len(actual) and all(map(agrees, known, actual))
    if isinstance(known, dict) and isinstance(actual, dict):
        return [*known] == [*actual] and all(map(agrees, known.values(), actual.values()))
    return type_of(known) == type_of(actual)


def check(text: str) -> tuple[object, list[object]]:
    """Return the results of a dry run and of real ones, with which it agrees."""
    known = dry(text)
    runs = [real(text, TRUE), real(text, FALSE)]
    ended = [each for each in runs if not isinstance(each, BaseException)]
    for actual in ended:
        assert agrees(known, actual), f"{text}\n{known!r} in place of {actual!r}"
    return known, ended


@pytest.mark.search
@pytest.mark.parametrize(("condition", "bound"), part([*itertools.product(CONDITIONS, BOUND)]))
def test_what_differs_after_branches_is_unknown(condition: str, bound: str) -> None:
    first, second, is_equal = BOUND[bound]
    text = program(condition, first, second)
    known, ended = check(text)
    assert isinstance(known, list), text
    unknown = any(map(is_unknown, known)) or any(
        is_unknown(part) for each in known if isinstance(each, dict) for part in each.values()
    )
    assert unknown != is_equal, f"{text}\n{known!r}"
    assert len(ended) == 2


@pytest.mark.search
@pytest.mark.parametrize(
    ("first", "second", "loop", "tried"),
    part([*itertools.product(LEAVING, LEAVING, LOOPS, TRIED)]),
)
def test_a_branch_ends_only_itself(first: str, second: str, loop: str, tried: str) -> None:
    if not loop and {first, second} & {"break", "continue"}:
        return
    for condition, bound in (("c", "numbers"), ("float(t) > 0.5", "a list"), ("t > 0.5", "trees")):
        one, other, _ = BOUND[bound]
        text = program(condition, f"{one}\n{first}", f"{other}\n{second}", loop, tried)
        known, ended = check(text)
        if not loop and not tried and len(ended) == 1:
            assert type_of(known) == type_of(ended[0]), text


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("result = 1 if c else 1", 1),
        ("result = [1] if c else [1]", [1]),
        ("result = c and False", False),
        ("result = c or True", True),
        ("assert c\nresult = 1", 1),
        ("assert float(t) > 3, 'small'\nresult = 1", 1),
        ("result = 0\nwhile c:\n    x = jnp.ones(3)\n    result = 0", 0),
        ("result = 0\nwhile float(t) > 0:\n    result = 0", 0),
        ("match 4:\n    case 1:\n        result = 1\n    case a:\n        result = a", 4),
        ("match 3:\n    case 3 if c is c:\n        result = 2\n    case _:\n        result = 3", 2),
        ("def f():\n    if c:\n        return 1\n    return f()\nf()\nresult = 1", 1),
        ("def f():\n    if c:\n        return f() + f()\n    return 0\nf()\nresult = 1", 1),
        ("def f():\n    if c:\n        return 1\n    return f() + f()\nf()\nresult = 1", 1),
    ],
)  # fmt: skip
def test_other_forms_of_conditions(text: str, result: object) -> None:
    assert dry(f"{text}\n") == result


@pytest.mark.parametrize(
    "text",
    [
        "result = 1 if c else 2",
        "result = c or 3",
        "result = c and 3",
        "result = 0\nwhile c:\n    result = result + 1",
        "match c:\n    case 1:\n        result = 2\n    case _:\n        result = 3",
        "match c:\n    case 1:\n        result = 2",
        "match c:\n    case a:\n        result = a",
        "xs = []\nfor i in range(5):\n    if c:\n        continue\n    xs.append(i)\nresult = xs",
        "xs = []\nfor i in range(5):\n    if c:\n        break\n    xs.append(i)\nresult = xs",
    ],
)
def test_what_depends_on_unknown_conditions_is_unknown(text: str) -> None:
    assert is_unknown(dry(f"{text}\n"))


def test_nested_conditions_run_each_branch_a_few_times() -> None:
    """Of thirty conditions inside of each other, in functions that call each other."""
    functions = "".join(
        f"def f{n}():\n    count.append(1)\n    if c:\n        f{n + 1}()\n    else:\n        f{n + 1}()\n"
        for n in range(30)
    )
    count: list[int] = []
    text = f"{functions}def f30():\n    pass\nf0()\nresult = 1\n"
    tree = ast.parse(text)
    SurvivalRewriter().rewrite(tree)
    runtime = DryRuntime()
    runtime.install()

    def run() -> tuple[()]:
        with runtime.running():
            exec(compile(tree, "program.py", "exec"), {"c": Unknown(), "count": count})
        return ()

    jax.make_jaxpr(run)()
    assert len(count) < 200
