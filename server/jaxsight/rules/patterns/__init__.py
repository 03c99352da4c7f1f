"""Patterns: expressions that a rule looks for, in a traced program and in the user's text.

A pattern is written as Python. A rule finds it in the program, and its fix finds the same pattern
in the text and fills the holes of a template with what stands there:

    >>> from jaxsight.rules.patterns.written import pattern
    >>> pattern("log(sum(exp(x)))")  # doctest: +ELLIPSIS
    <ast.Call object at ...>

* A name that is called is an equation (`words.py` says of which primitives), a call in the text, or
  a *word* that a rule defines by further patterns: `{"mean": ("sum(x) / N", "sum(x) * N")}`.
* A name alone is a *hole*: it stands for any value or expression, and where it occurs twice, for
  equal ones. A capital letter is a hole that admits only what its rule says, `*x` all arguments.
* A number is that literal, `+` and `*` may have their operands in any order, `x ** 2` is a square
  however it is written, and `...` at the end of a sum is one more term like the last, or several.

A template is what to write instead, with the texts of the holes: `{x}`, the negative `{-x}`, and
`{(x)}` as an operand.

    >>> from jaxsight.rules.patterns.written import texts_of
    >>> "{(x)} + jnp.log(-jnp.expm1({-x}))".format_map(texts_of({"x": "a + b"}))
    '(a + b) + jnp.log(-jnp.expm1(-(a + b)))'

`programs.py` and `syntax.py` match; neither knows what is wrong with what it finds. A rule is then
a table of patterns with their guards, words and templates: `jx417_unstable_form/forms.py`.
"""
