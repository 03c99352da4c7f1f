"""What is said about lines that cannot be read: at which word, with which code, in which words.

Each case is the body of a section; `^^^` stands under the wrong word, followed by the code and the message.
"""

from __future__ import annotations

import re
from textwrap import dedent, indent

import pytest

from jaxsight.engine import examples
from tests.examples.fixtures import function

LINES = r"""
x: flaot32[3]
   ^^^^^^^ JX902 `flaot32` is no dtype: did you mean `f32`?

x: float[3]
   ^^^^^ JX902 `float` is no dtype: did you mean `f32`?

x: quux[3]
   ^^^^ JX902 `quux` is no dtype; jaxprs print `f32`, `bf16`, `i32`, `bool`, …

x: bf61
   ^^^^ JX902 `bf61` is no dtype: did you mean `bf16[…]`?

x: [f32[2], i23[2]]
            ^^^ JX902 `i23` is no dtype: did you mean `i32`?

x: key<fyr>[]
       ^^^ JX902 `fyr` is no key implementation: did you mean `fry`?

x: f32
      ^ JX901 expected `[` and a shape after `f32` (a scalar is `f32[]`), found the end of the line

x: key[3]
      ^ JX901 expected `<` and a key implementation after `key`, as in `key<fry>[]`, found `[`

x: f32[4, 5
      ^ JX901 `[` is not closed: expected `]`

x: {'a': f32[4], 'b': (f32[2]}
                             ^ JX901 expected `,` or `)`, found `}`

x: f32[4 5]
         ^ JX901 expected `,` or `]`, found `5`

x: f32[4] f32[5]
          ^^^ JX901 expected the end of the line, found `f32`

x: f32[...]
       ^^^ JX901 `...` is no size: an example has a number or a name there

x: f32[4.5]
       ^^^ JX901 a size is a whole number

x: f32[-1]
       ^ JX901 a size is at least 0

x: f32[8 / 2]
         ^ JX901 `/` is not for sizes: `//` divides sizes

x: f32[99999999999999999999]
       ^^^^^^^^^^^^^^^^^^^^ JX906 this is too large for a size

x: train
   ^^^^^ JX901 expected an example such as `f32[8, 16]`, found `train` (a string is `'train'`, a Python expression `x = train`)

x: jnp.ones(3)
   ^^^ JX901 `jnp` begins a Python expression, which comes after `=`: write `x = jnp…`

x: 2 * 3
     ^ JX901 arithmetic is an expression: write `x = …`

x: f'{y}'
   ^^^^^^ JX901 an f-string is an expression: write `x = …`

x: 'train
   ^ JX901 this string is not closed

x: 08
   ^^ JX901 not a Python literal: leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers

x: {f32[3]: 1}
    ^^^^^^ JX901 a dict's key is a literal, such as `'w'` or `0`

x: {f32[3], 1}
    ^^^^^^ JX901 a dict's item is `key: example`; a set holds literals

x: {'a': 1, 'a': 2}
            ^^^ JX907 the key 'a' is there twice

x:
  ^ JX901 expected an example such as `f32[8, 16]`, a pytree of them, or a literal, found the end of the line

x f32[3]
  ^^^ JX901 expected `:` and an example after `x`, or `=` and a Python expression, found `f32`

- x: f32[3]
^ JX901 expected the name of an argument, found `-`

x, : f32[3]
   ^ JX901 expected the name of an argument, found `:`

x =
   ^ JX901 expected a Python expression after `x =`, found the end of the line

x = f(1, (2]
           ^ JX901 expected `)`, found `]`

x = f(1))
        ^ JX901 `)` closes nothing

x = f(1
     ^ JX901 `(` is not closed: expected `)`

x = 1 +* 2
       ^ JX901 not a Python expression: invalid syntax

x, y = f()
     ^ JX901 `=` gives one argument, so that nobody reads it as unpacking: use a line each

y: f32[3]
^ JX903 `f` has no parameter `y`: it has `x`

*x: (f32[3],)
^^ JX903 `f` has no parameter `*x`: did you mean `x`?

x: f32[B]
       ^ JX906 size `B` is not known: add `where B=…`

x: f32[batches]
       ^^^^^^^ JX906 size `batches` is not known: did you mean `batch`?

x: f32[4 - batch]
       ^^^^^^^^^ JX906 `4 - batch` is -28: a size is at least 0

x: f32[4 // (batch - 32)]
       ^^^^^^^^^^^^^^^^^ JX906 `4 // (batch - 32)` divides by zero

where B
       ^ JX901 expected `=` and a number after `B`, found the end of the line

where B=[3]
        ^ JX901 expected a size: a number or a name, found `[`

where B=Q
        ^ JX906 size `Q` is not known: add `where Q=…`

where B=2, B=3
           ^ JX907 size `B` is defined already

where B=2*B
          ^ JX907 size `B` is defined by itself: B → B

where
     ^ JX901 expected a size such as `B=32` after `where`, found the end of the line

Expect (h100): kernel <= 3
               ^^^^^^ JX908 `kernel` is nothing to expect: did you mean `kernels`?

Expect (h100): speed <= 3
               ^^^^^ JX908 `speed` is nothing to expect: known are `kernels`, `launches`, `temp`, `folded`

Expect (h100): kernels = 3
                       ^ JX908 expected `<=`, `<`, `==`, `>=` or `>` after `kernels`, found `=`

Expect (h100): temp <= 4
                        ^ JX908 expected a unit, such as `4 MiB`, found the end of the line

Expect (h100): temp <= 4 mib
                         ^^^ JX908 `mib` is no unit: did you mean `MiB`?

Expect (h100): kernels <= 4 MiB
                            ^^^ JX908 `kernels` is a count: it has no unit

Expect (h100): kernels <= 4.5
                          ^^^ JX908 `kernels` must come to a whole number

Expect (h100)
             ^ JX908 expected `:`, found the end of the line

Expect (): kernels <= 3
        ^ JX908 expected a target between the brackets
"""
CASE = re.compile(r"(?P<line>.+)\n(?P<blank> *)(?P<marks>\^+) (?P<code>JX\d+) (?P<message>.+)")


def section(*lines: str) -> str:
    body = indent("\n".join(lines), " " * 8)
    return f'def f(x=None):\n    """Do it.\n\n    Example inputs:\n{body}\n    """\n'


@pytest.mark.parametrize("case", LINES.strip().split("\n\n"), ids=lambda case: case.split("\n")[0])
def test_a_wrong_line_is_marked_at_its_wrong_word(case: str) -> None:
    expected = CASE.fullmatch(case)
    assert expected is not None
    line = expected["line"]
    (problem,) = examples.of(function(section(line)), sizes={"batch": 32}).problems
    marked = problem.range
    assert (problem.code, problem.message) == (expected["code"], expected["message"])
    assert marked.start.line == marked.end.line == 4
    assert marked.start.column == 8 + len(expected["blank"])
    # What is missing at the end of a line has no width.
    width = marked.end.column - marked.start.column
    assert width == (0 if "found the end" in problem.message else len(expected["marks"]))


def problems(source: str, name: str | None = None) -> list[str]:
    found = examples.of(function(source, name), sizes={}).problems
    lines = dedent(source).split("\n")
    shown = []
    for p in found:
        end = p.range.end.column if p.range.end.line == p.range.start.line else None
        word = lines[p.range.start.line][p.range.start.column : end]
        shown.append(f"{p.code} {word!r} {p.message}")
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
        "JX904 'Example inputs' `x` and `y` have no example: add `x, y: f32[8, 8]`"
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
        "JX906 'Example inputs' `d` in the annotation of `x` and `y` is not known: add `where d=…`",
        "JX904 'Example inputs' `z` has no example: add `z: f32[8, 8]`",
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
        "JX904 'Example inputs' `self` has no example: add `self = Model(…)` here,"
        " or in an `Example inputs:` section of the docstring of `Model`"
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
    assert only.startswith("JX901 'f32[3]' `n` is static, so it cannot be an array")


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
        "JX907 'Example inputs' there is an unnamed set already: name this one differently"
    )


def test_an_argument_is_given_once() -> None:
    assert problems(section("x: f32[3]", "x: f32[4]")) == ["JX907 'x' `x` has an example already"]


def test_a_heading_that_is_not_closed_is_told() -> None:
    source = '''
    def f(x):
        """
        Example inputs (decode:
            x: f32[3]
        """
    '''
    assert problems(source) == [
        "JX901 '(' `(` is not closed: a named set is `Example inputs (name):`"
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
        "JX903 'args' `args` collects arguments: write `*args: (f32[8], f32[8])`",
        "JX901 'f32[3]' `*args` takes a tuple of examples: `*args: (f32[8], f32[8])`",
        "JX901 '(1, 2)' `**options` takes a dict of examples: `**options: {'a': f32[8]}`",
    ]


def test_a_wrong_project_example_is_placed_in_its_own_text() -> None:
    f = function("def f(x, y): ...")
    found = examples.of(f, sizes={}, project="x: flaot32[3]\nz: f32[3]\ny: f32[1]").problems
    assert [(p.code, p.range.start.line, p.range.start.column) for p in found] == [
        ("JX909", 0, 3),
        ("JX909", 1, 0),
    ]


def test_deeply_nested_brackets_are_refused_rather_than_followed() -> None:
    deep = "(" * 5000 + ")" * 5000
    for line in (f"x: {deep}", f"x = {deep}", f"x: f32[{deep}]", f"x: f32[{'1+' * 5000}1]"):
        assert [p[:5] for p in problems(section(line))] == ["JX901"]
