"""Texts for properties: well-formed modules, and heaps of lines that nobody would call one."""

from __future__ import annotations

from hypothesis import strategies as st

LINES = (
    "import jax",
    "import jax.numpy as jnp",
    "from a import (b,",
    "c)",
    "def f(x):",
    "    return x",
    "    yield x",
    "def g(",
    "async def h(): pass",
    "class A:",
    "    def m(self, y=1): return y",
    '    """Doc of it.',
    '    """Whole doc."""',
    '"""',
    "'''",
    "x = '''a",
    'y = """b"""',
    "x = 'abc",
    "z = 'it''s'",
    "x = (",
    ")",
    "x = [1,",
    "]",
    "}",
    "d = {'k': 1}",
    "@jit",
    "@partial(jit,",
    "static_argnames='x')",
    "if a:",
    "else:",
    "    y = 1",
    "for i in x:",
    "try:",
    "except E:",
    "finally:",
    "with m as n:",
    "\\",
    "x = 1 \\",
    "+ 2",
    "x = 1; y = 2",
    "a = 1;",
    "",
    "   ",
    "# a comment",
    "# it's one",
    "# jaxsight: always",
    "p(1)  # jaxsight: always",
    "    # indented",
    "\f",
    "\fdef q(): pass",
    "  \fw = 1",
    "\ttab = 1",
    "é = '𝒳'",
    "s = '\u2028'",
    "x = f'{a}'",
    "lambda: (",
    "d['a'] = 1",
    "d.append(x)",
    "return 1",
    "import os",
    "os.environ['A'] = '1'",
    "\x00",
    "match x:",
    "    case 1: pass",
)
"""Each kind of line that the reading of a text has to tell from others."""

STATEMENTS = (
    "import jax",
    "from a import (\nb,\nc\n)",
    "def f(x):\n    return x",
    "@jit\n# why\n\n@partial(jit,\nstatic_argnames='x')\ndef g(x, y): return x",
    'class A:\n    """Doc of it.\n\nAt the first column.\n    """\n\n    def m(self):\n        pass\n    # tail',
    '"""Text\ndef no(): pass\n# \' (\n"""',
    "x = [  # it's\n1,\n]",
    "x = 1; y = 2;",
    "x = 1 \\\n+ 2",
    "x = 1 \\\n",
    "if a:\n  x\n# c\nelif b: y\n\nelse:\n  z",
    "try:\n\tx\nexcept E:\n\ty\nfinally:\n\tz",
    "for i in x:\n    d[i] = 1",
    "async def h():\n    await x",
    "\fw = 1",
    "é = '𝒳\u2028'",
    "# only a comment",
    "",
    "x = '''a\n# '''",
    "match x:\n  case 1: pass",
    "print(f(1))  # jaxsight: always",
    "with m as n, o: pass",
)
"""Whole statements, written in ways that are easily cut at the wrong line."""

line_ends = st.sampled_from(("\n", "\n", "\n", "\r\n", "\r"))


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Text that parses."""
    statements = draw(st.lists(st.tuples(st.sampled_from(STATEMENTS), line_ends), max_size=8))
    return "".join(statement.replace("\n", end) + end for statement, end in statements)


@st.composite
def heaps(draw: st.DrawFn, max_size: int = 12) -> str:
    """Lines in any order, mostly no module."""
    lines = draw(st.lists(st.tuples(st.sampled_from(LINES), line_ends), max_size=max_size))
    text = "".join(line + end for line, end in lines)
    return text if draw(st.booleans()) else text.rstrip("\r\n")


@st.composite
def edits(draw: st.DrawFn, text: str) -> str:
    """The text with some range of it replaced by lines, by a few characters, or by nothing."""
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 40)))
    typed = draw(heaps(max_size=3) | st.sampled_from(LINES) | st.text("\"'()\\\n #@x=", max_size=3))
    return text[:start] + typed + text[end:]
