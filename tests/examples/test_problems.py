"""Malformed lines of example inputs: the marked word, the rule, the message and the help.

Each case is the body of a section; `^^^` is under the wrong word, followed by the code and the
message, and by the help on a line of its own.
"""

from __future__ import annotations

import re
from textwrap import dedent, indent

import pytest

from jaxsight.examples import choice
from tests.examples.fixtures import function

LINES = r"""
x: flaot32[3]
   ^^^^^^^ JX902 unknown dtype `flaot32`
   | help: did you mean `f32`?

x: float[3]
   ^^^^^ JX902 unknown dtype `float`
   | help: did you mean `f32`?

x: quux[3]
   ^^^^ JX902 unknown dtype `quux`
   | help: use a dtype as jaxprs print it: `f32`, `bf16`, `i32`, `bool`, …

x: bf61
   ^^^^ JX902 unknown dtype `bf61`
   | help: did you mean `bf16[…]`?

x: [f32[2], i23[2]]
            ^^^ JX902 unknown dtype `i23`
            | help: did you mean `i32`?

x: key<fyr>[]
       ^^^ JX902 unknown key implementation `fyr`
       | help: did you mean `fry`?

x: f32
      ^ JX901 expected a shape after `f32`, found the end of the line
      | help: write `f32[]` for a scalar

x: key[3]
      ^ JX901 expected `<` after `key`, found `[`
      | help: name the key implementation, such as `key<fry>[]`

x: f32[4, 5
      ^ JX901 `[` is never closed
      | help: add `]`

x: {'a': f32[4], 'b': (f32[2]}
                             ^ JX901 expected `,` or `)`, found `}`

x: f32[4 5]
         ^ JX901 expected `,` or `]`, found `5`

x: f32[4] f32[5]
          ^^^ JX901 expected the end of the line, found `f32`

x: f32[...]
       ^^^ JX901 `...` is not a valid size
       | help: use a number or a name

x: f32[4.5]
       ^^^ JX901 size `4.5` is not a whole number

x: f32[-1]
       ^ JX901 size is negative

x: f32[8 / 2]
         ^ JX901 sizes do not support `/`
         | help: use `//` for integer division

x: f32[99999999999999999999]
       ^^^^^^^^^^^^^^^^^^^^ JX906 size exceeds 9,223,372,036,854,775,807

x: train
   ^^^^^ JX901 expected an example such as `f32[8, 16]`, found `train`
   | help: write `'train'` for a string, or `x = train` for an expression

x: jnp.ones(3)
   ^^^ JX901 expected an example, found a Python expression
   | help: use `=` for Python expressions: `x = jnp…`

x: 2 * 3
     ^ JX901 expected an example, found arithmetic
     | help: use `=` for Python expressions: `x = …`

x: f'{y}'
   ^^^^^^ JX901 expected an example, found an f-string
   | help: use `=` for Python expressions: `x = …`

x: 'train
   ^ JX901 string is never closed

x: 08
   ^^ JX901 invalid Python literal: leading zeros in decimal integer literals are not permitted
   | help: use an 0o prefix for octal integers

x: {f32[3]: 1}
    ^^^^^^ JX901 dict key is not a hashable literal
    | help: use a literal such as `'w'` or `0`

x: {f32[3], 1}
    ^^^^^^ JX901 a set can only contain literals
    | help: write `key: example` for each item of a dict

x: {'a': 1, 'a': 2}
            ^^^ JX907 duplicate dict key `'a'`
            | help: remove one of the items

x:
  ^ JX901 expected an example, found the end of the line
  | help: write an array such as `f32[8, 16]`, a pytree of arrays, or a literal

x f32[3]
  ^^^ JX901 expected `:` or `=` after `x`, found `f32`
  | help: write `x: EXAMPLE`, or `x = EXPRESSION`

- x: f32[3]
^ JX901 expected a parameter name, found `-`

x, : f32[3]
   ^ JX901 expected a parameter name, found `:`

x =
   ^ JX901 expected a Python expression after `x =`, found the end of the line

x = f(1, (2]
           ^ JX901 expected `)`, found `]`

x = f(1))
        ^ JX901 unmatched `)`

x = f(1
     ^ JX901 `(` is never closed
     | help: add `)`

x = 1 +* 2
       ^ JX901 invalid Python expression

x, y = f()
     ^ JX901 `=` takes a single parameter
     | help: write one line for each parameter; an example cannot be unpacked

y: f32[3]
^ JX903 `f` has no parameter `y`
| help: use a parameter of the function: `x`

*x: (f32[3],)
^^ JX903 `f` has no parameter `*x`
| help: did you mean `x`?

x: f32[B]
       ^ JX906 undefined size `B`
       | help: add `where B=…`

x: f32[batches]
       ^^^^^^^ JX906 undefined size `batches`
       | help: did you mean `batch`?

x: f32[4 - batch]
       ^^^^^^^^^ JX906 size `4 - batch` is negative (-28)

x: f32[4 // (batch - 32)]
       ^^^^^^^^^^^^^^^^^ JX906 division by zero in `4 // (batch - 32)`

where B
       ^ JX901 expected `=` after `B`, found the end of the line
       | help: write `B=32`

where B=[3]
        ^ JX901 expected a size, found `[`
        | help: use a number or a name

where B=Q
        ^ JX906 undefined size `Q`
        | help: add `where Q=…`

where B=2, B=3
           ^ JX907 duplicate definition of size `B`
           | help: remove one of them

where B=2*B
          ^ JX907 circular size definition: B → B

where
     ^ JX901 expected a size after `where`, found the end of the line
     | help: write a size such as `where B=32`

x: f32[8@]
         ^ JX901 expected a mesh axis, found `]`
         | help: write a mesh axis: `8@data`, or `8@(data,model)` for several

x: f32[8@'data']
         ^^^^^^ JX901 expected a mesh axis, found `'data'`
         | help: write a mesh axis: `8@data`, or `8@(data,model)` for several

x: f32[8@(data
         ^ JX901 `(` is never closed
         | help: add `)`

x: f32[8@(a b)]
            ^ JX901 expected `,` or `)`, found `b`

x: f32[@data]
       ^ JX901 expected a size, found `@`
       | help: use a number or a name

x: f32[8@data, 8@(model,data)]
                        ^^^^ JX907 mesh axis `data` is used twice in a shape
                        | help: an array can be divided only once over an axis: remove one of them

mesh:
     ^ JX901 expected a mesh axis, found the end of the line
     | help: write axes with their sizes: `mesh: data=2, model=4`

mesh: MESH
          ^ JX901 expected `=` after the mesh axis `MESH`, found the end of the line
          | help: write `MESH=2` for an axis, or `mesh = MESH` for a mesh of the module

mesh: data=2 model=4
             ^^^^^ JX901 unknown type of mesh axes `model`
             | help: use `explicit` or `auto`

mesh: data=2 Explicit
             ^^^^^^^^ JX901 unknown type of mesh axes `Explicit`
             | help: did you mean `explicit`?

mesh: data=2 manual
             ^^^^^^ JX901 manual mesh axes cannot be declared
             | help: use `jax.shard_map` in the function, which makes axes manual

mesh: data=2 auto explicit
                  ^^^^^^^^ JX901 expected `,` or the end of the line, found `explicit`

mesh: data=2, data=4
              ^^^^ JX907 duplicate mesh axis `data`
              | help: remove one of them

mesh: data=N
           ^ JX906 undefined size `N`
           | help: add `where N=…`

mesh: data=0
      ^^^^ JX906 mesh axis `data` has size 0
      | help: use a size of at least 1

mesh: (2, 4)
^^^^ JX903 `f` has no parameter `mesh`
| help: write the axes of a mesh with their sizes: `mesh: data=2, model=4`

Expect (h100): kernel <= 3
               ^^^^^^ JX908 unknown metric `kernel`
               | help: did you mean `kernels`?

Expect (h100): speed <= 3
               ^^^^^ JX908 unknown metric `speed`
               | help: use `kernels`, `launches`, `temp`, `folded`, `collectives` or `moved`

Expect (h100x8): all-gather == 0
                 ^^^^^^^^^^ JX908 unknown metric `all-gather`
                 | help: did you mean `all-gathers`?

Expect (h100x8): all_reduces == 0
                 ^^^^^^^^^^^ JX908 unknown metric `all_reduces`
                 | help: did you mean `all-reduces`?

Expect (h100x8): moved-bytes <= 3 MiB
                 ^^^^^^^^^^^ JX908 unknown metric `moved-bytes`
                 | help: did you mean `moved`?

Expect (v5e:4x4): moved <= 64
                             ^ JX908 expected a unit after `64`, found the end of the line
                             | help: write `64 MiB`

Expect (h100): kernels = 3
                       ^ JX908 expected a comparison after `kernels`, found `=`
                       | help: use `<=`, `<`, `==`, `>=` or `>`

Expect (h100): temp <= 4
                        ^ JX908 expected a unit after `4`, found the end of the line
                        | help: write `4 MiB`

Expect (h100): temp <= 4 mib
                         ^^^ JX908 unknown unit `mib`
                         | help: did you mean `MiB`?

Expect (h100): kernels <= 4 MiB
                            ^^^ JX908 `kernels` is a count and takes no unit
                            | help: remove the unit

Expect (h100): kernels <= 4.5
                          ^^^ JX908 `kernels` must be a whole number

Expect (h100)
             ^ JX908 expected `:`, found the end of the line

Expect (): kernels <= 3
        ^ JX908 missing target in parentheses
        | help: write `Expect (h100):`, or `Expect:` for the configured target
"""
CASE = re.compile(
    r"(?P<line>.+)\n(?P<blank> *)(?P<marks>\^+) (?P<code>JX\d+) (?P<message>.+)"
    r"(?:\n *\| help: (?P<help>.+))?"
)


def section(*lines: str) -> str:
    body = indent("\n".join(lines), " " * 8)
    return f'def f(x=None):\n    """Do it.\n\n    Example inputs:\n{body}\n    """\n'


@pytest.mark.parametrize("case", LINES.strip().split("\n\n"), ids=lambda case: case.split("\n")[0])
def test_a_wrong_line_is_marked_at_its_wrong_word(case: str) -> None:
    expected = CASE.fullmatch(case)
    assert expected is not None
    line = expected["line"]
    (problem,) = choice.of(function(section(line)), sizes={"batch": 32}).problems
    marked = problem.range
    assert (problem.code, problem.message) == (expected["code"], expected["message"])
    assert problem.help == (expected["help"] or "")
    assert len(problem.message) <= 100
    assert marked.start.line == marked.end.line == 4
    assert marked.start.column == 8 + len(expected["blank"])
    # What is missing at the end of a line has no width.
    width = marked.end.column - marked.start.column
    assert width == (0 if "found the end" in problem.message else len(expected["marks"]))


def problems(source: str, name: str | None = None) -> list[str]:
    found = choice.of(function(source, name), sizes={}).problems
    lines = dedent(source).split("\n")
    shown = []
    for p in found:
        end = p.range.end.column if p.range.end.line == p.range.start.line else None
        word = lines[p.range.start.line][p.range.start.column : end]
        shown.append(f"{p.code} {word!r} {p.message}{p.help and f' | {p.help}'}")
    return shown


def test_reading_goes_on_after_a_wrong_line() -> None:
    source = section("x: f32[", "y: f32[3]", "where B", "x: f32[3]")
    assert [p[:5] for p in problems(source)] == ["JX901", "JX903", "JX901"]


def test_an_argument_with_a_wrong_line_is_not_missing_too() -> None:
    assert [p[:5] for p in problems(section("x: flaot32[3]"))] == ["JX902"]


def test_missing_arguments_are_told_once_at_the_heading() -> None:
    source = '''
    def f(x, y, n=3):
        """
        Example inputs:
            n: 2
        Example inputs (more):
            x: f32[3]
        """
    '''
    assert problems(source) == [
        "JX904 'Example inputs' no example for `x` and `y` | add `x, y: f32[8, 8]`"
    ]


def test_sizes_that_an_annotation_needs_are_told() -> None:
    source = '''
    def f(x: Float[Array, "b d"], y: Float[Array, "d"], z):
        """
        Example inputs:
            where b=2
        """
    '''
    assert problems(source) == [
        (
            "JX906 'Example inputs' undefined size `d` in the annotations of `x` and `y`"
            " | add `where d=…`"
        ),
        "JX904 'Example inputs' no example for `z` | add `z: f32[8, 8]`",
    ]


def test_a_method_without_self_is_told_how_to_give_it() -> None:
    source = '''
    class Model:
        def __call__(self, x):
            """
            Example inputs:
                x: f32[3]
            """
    '''
    (only,) = problems(source)
    assert only == (
        "JX904 'Example inputs' no example for `self` | add `self = Model(…)` here,"
        " or to an `Example inputs:` section in the docstring of `Model`"
    )


def test_a_static_argument_cannot_be_an_array() -> None:
    source = '''
    @partial(jax.jit, static_argnames="n")
    def f(x, n):
        """
        Example inputs:
            x, n: f32[3]
        """
    '''
    (only,) = problems(source)
    assert only == (
        "JX901 'f32[3]' static parameter `n` cannot be an array"
        " | use a literal, or a Python expression: `n = …`"
    )


def test_two_sets_need_two_names() -> None:
    source = '''
    def f(x):
        """
        Example inputs:
            x: f32[3]
        Example inputs:
            x: f32[4]
        """
    '''
    (only,) = problems(source)
    assert only == (
        "JX907 'Example inputs' more than one unnamed example set"
        " | name each set differently: `Example inputs (NAME):`"
    )


def test_messages_stay_short_whatever_the_names() -> None:
    name = "n" * 200
    lines = (
        f"{name}: f32[3]",
        f"x: {name}",
        f"x: {name}[3]",
        f"x: f32[{name}]",
        f"x: f32[{name} * -1]",
        f"x: '{name}' {name}",
        f"x: {{'{name}': 1, '{name}': 2}}",
        f"x: key<{name}>[]",
        f"{name} f32[3]",
        f"{name} =",
        f"where {name}",
        f"where {name}=2*{name}",
        f"Expect (h100): {name} <= 3",
        f"Expect (h100): temp <= 1{'0' * 200}",
        f"Expect (h100): temp <= 1 {name}",
    )
    for line in lines:
        found = choice.of(function(section(line)), sizes={}).problems
        assert [len(p.message) for p in found if len(p.message) > 100] == [], line
        assert found, line


def test_missing_arguments_are_listed_briefly() -> None:
    names = [f"{letter * 40}" for letter in "abcde"]
    source = f'''
    def f({", ".join(names)}):
        """
        Example inputs:
            where N=2
        """
    '''
    (only,) = choice.of(function(source), sizes={}).problems
    assert only.message.endswith("and 3 more")
    assert len(only.message) <= 100
    assert ", ".join(names) in only.help


def test_an_argument_is_given_once() -> None:
    assert problems(section("x: f32[3]", "x: f32[4]")) == [
        (
            "JX907 'x' duplicate example for `x`"
            " | remove one, or give each a set of its own: `Example inputs (NAME):`"
        )
    ]


def test_a_heading_that_is_not_closed_is_told() -> None:
    source = '''
    def f(x):
        """
        Example inputs (decode:
            x: f32[3]
        """
    '''
    assert problems(source) == [
        "JX901 '(' `(` is never closed | write `Example inputs (NAME):` for a named set"
    ]


def test_wrong_stars_are_told_how_to_be_right() -> None:
    source = '''
    def f(*args, **options):
        """
        Example inputs:
            args: f32[3]
            *args: f32[3]
            **options: (1, 2)
        """
    '''
    assert problems(source) == [
        "JX903 'args' `args` collects positional arguments | write `*args: (f32[8], f32[8])`",
        "JX901 'f32[3]' `*args` takes a tuple of examples | write `*args: (f32[8], f32[8])`",
        "JX901 '(1, 2)' `**options` takes a dict of examples | write `**options: {'a': f32[8]}`",
    ]


def test_a_wrong_project_example_is_placed_in_its_own_text() -> None:
    f = function("def f(x, y): ...")
    found = choice.of(f, sizes={}, project="x: flaot32[3]\nz: f32[3]\ny: f32[1]").problems
    assert [(p.code, p.range.start.line, p.range.start.column) for p in found] == [
        ("JX909", 0, 3),
        ("JX909", 1, 0),
    ]


def test_deeply_nested_brackets_are_refused_rather_than_followed() -> None:
    deep = "(" * 5000 + ")" * 5000
    for line in (f"x: {deep}", f"x = {deep}", f"x: f32[{deep}]", f"x: f32[{'1+' * 5000}1]"):
        assert [p[:5] for p in problems(section(line))] == ["JX901"]


def test_a_mesh_that_is_declared_has_the_axes_that_arrays_name() -> None:
    assert problems(section("mesh: data=2, model=4", "x: f32[8@dta]")) == [
        "JX906 'dta' unknown mesh axis `dta` | did you mean `data`?"
    ]
    assert problems(section("mesh: data=2, model=4", "x: f32[8@z]")) == [
        "JX906 'z' unknown mesh axis `z` | use an axis of the mesh: `data` and `model`"
    ]


def test_an_axis_divides_its_dimension() -> None:
    assert problems(section("mesh: data=4", "x: (f32[4], f32[6@data])")) == [
        "JX907 '6' size 6 is not divisible by mesh axis `data` of size 4 | use a multiple of 4"
    ]
    assert problems(section("mesh: a=2, b=2", "x: f32[3, B@(a,b)]", "where B=6")) == [
        (
            "JX907 'B' size `B` (6) is not divisible by mesh axes `a` and `b` of size 4"
            " | use a multiple of 4"
        )
    ]


def test_a_wrong_mesh_has_no_further_problems() -> None:
    assert [p[:5] for p in problems(section("mesh: data=", "x: f32[6@model]"))] == ["JX901"]
    assert [p[:5] for p in problems(section("mesh: data=N", "x: f32[6@model]"))] == ["JX906"]
