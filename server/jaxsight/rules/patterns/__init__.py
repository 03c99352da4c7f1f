"""Patterns: expressions that a rule looks for, in a traced program and in the user's text.

A pattern is written as Python. Where an equation of a program completes it, it gives the values
that its names stand for; where an expression is one, it gives what is written there, and a template
says what to write instead:

    found = ProgramPatterns(view).at(step, "sqrt(sum(x ** 2))")  # found.values["x"]
    found = SyntaxPatterns(context).at(node, "(a @ b) @ c")
    text = SyntaxPatterns(context).filled("{(a)} @ ({(b)} @ {(c)})", found)

* A name that is called is an equation (`programs.PRIMITIVES`), a call in the text
  (`syntax.FUNCTIONS`), or one that the rule defines: `mean` as `sum(_) / N | sum(_) * N`.
* Any other name is a hole. It stands for any value or expression, and where it is written twice,
  for equal ones. A capital letter admits only what its rule says, `N` numbers, `*x` all arguments.
* A number is that literal. `+` and `*` may have their operands in any order, `x ** 2` is a square
  however it is written, and `...` at the end of a sum are any more terms like the last one.
* `|` stands between patterns of which one is enough.

A template has the texts of the holes: `{x}`, the negative `{-x}`, and `{(x)}` as an operand; in the
user's text also `{x^T}`, an array with its last two axes swapped.

    >>> from jaxsight.rules.patterns.written import texts_of
    >>> "{(x)} + jnp.log(-jnp.expm1({-x}))".format_map(texts_of({"x": "a + b"}))
    '(a + b) + jnp.log(-jnp.expm1(-(a + b)))'

Neither `programs.py` nor `syntax.py` knows what is wrong with what it finds. A rule is then a table
of patterns, templates and guards: `jx417_unstable_form/forms.py`, `jx213_explicit_inverse/rule.py`.
"""
