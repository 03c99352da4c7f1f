"""Where a tracer's spans stand now, and which expressions a position is in."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.relocate import expressions_at, relocate
from jaxsight.source.text import Position
from jaxsight.wire.chunks import Span
from tests.source.texts import modules

TRACED = '''def f(x, scale: float = 1):
    """Doc."""
    é = "𝒳", jnp.sum(x)
    y = [i * scale for i in x]
    return g(é,   y)'''


def span_of(text: str, part: str) -> Span:
    """The span of a part of the text, as Python counts: lines from 1, columns in bytes."""
    at = text.index(part)
    line_start = text.rfind("\n", 0, at) + 1
    lines = part.split("\n")
    column = len(text[line_start:at].encode())
    last = len(lines[-1].encode()) + (column if len(lines) == 1 else 0)
    line = text.count("\n", 0, at) + 1
    return Span("0" * 16, line, column, line + len(lines) - 1, last)


def now(text: str) -> tuple[Module, ModuleChunk]:
    module = Module.parse(text)
    return module, module.chunks[-1]


def moved(part: str, text: str, traced: str = TRACED) -> str | None:
    """What stands in `text` where the tracer saw `part`."""
    module, chunk = now(text)
    found = relocate(span_of(traced, part), traced, chunk)
    return module.slice_text(found) if found is not None else None


@pytest.mark.parametrize(
    "part", ["jnp.sum(x)", "é", "g(é,   y)", "scale", "[i * scale for i in x]"]
)
def test_an_unchanged_chunk_only_moves(part: str) -> None:
    assert moved(part, "import jax\n\n# head\n" + TRACED) == part


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Doc."""', '"""Doc.\n\n    Example inputs:\n        x: f32[3]\n    """\n    # why'),
        ('    """Doc."""\n', ""),
        ("jnp.sum(x)", "(  # a sum\n        jnp . sum( x, )\n    )"),
        ("def f(", "def f(  # many\n    "),
        ("    return", "\n\n    # almost\n    return"),
        ("scale: float", "scale : float"),
    ],
)
def test_what_means_the_same_is_carried_over_node_by_node(old: str, new: str) -> None:
    text = TRACED.replace(old, new)
    for part in ("jnp.sum(x)", "jnp.sum", "é", "g(é,   y)", "i * scale", "scale"):
        expected = new[new.index("jnp") : new.index(")") + 1] if old == part else part
        if part == "jnp.sum" and old == "jnp.sum(x)":
            expected = "jnp . sum"
        assert moved(part, text) == expected


@settings(max_examples=100, deadline=None)
@given(modules(), st.integers(1, 3))
def test_every_node_is_found_in_the_text_as_python_would_write_it(text: str, blanks: int) -> None:
    for chunk in Module.parse(text).chunks:
        tree = ast.parse(chunk.text)
        written = ast.unparse(tree)
        if ast.dump(ast.parse(written)) != ast.dump(tree):
            continue
        module, counterpart = now("\n" * blanks + written)
        if len(module.chunks) != 1:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset is not None:
                span = Span(
                    chunk.id, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
                )
                found = relocate(span, chunk.text, counterpart)
                assert found is not None
                there = ast.parse("(" + module.slice_text(found).strip() + ")", mode="eval").body
                if not isinstance(getattr(node, "ctx", None), ast.Store):
                    assert ast.dump(there) == ast.dump(node)


def test_a_changed_meaning_shifts_what_still_stands() -> None:
    text = TRACED.replace("jnp.sum(x)", "jnp.max(x)")
    assert moved("jnp.sum(x)", text) is None or moved("jnp.sum(x)", text) == "jnp.max(x)"
    assert moved("g(é,   y)", "\n" + text) == "g(é,   y)"
    assert moved("é", text) == "é"


def test_spans_outside_of_the_text_are_gone() -> None:
    _, chunk = now(TRACED)
    assert relocate(Span("0" * 16, 99, 0, 99, 1), TRACED, chunk) is None


def at(text: str) -> list[str]:
    before, after = text.split("$0")
    module = Module.parse("\n# head\n" + before + after)
    position = Position(2 + before.count("\n"), len(before.rpartition("\n")[2]))
    chunk = module.chunk_at(position)
    assert chunk is not None
    return [module.slice_text(range) for range in expressions_at(chunk, position)]


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("y = jnp.$0sum(x)", ["jnp.sum", "jnp.sum(x)"]),
        ("y = jnp.sum($0x)", ["x", "jnp.sum(x)"]),
        ("y = jnp.sum(x$0)", ["x", "jnp.sum(x)"]),
        ("y = $0x.T", ["x", "x.T"]),
        ("y = x$0.T", ["x", "x.T"]),
        ("y = x.$0T", ["x.T"]),
        ("y = x.T$0", ["x.T"]),
        ("$0y = x.T", ["y"]),
        ("y = a $0+ b", ["a + b"]),
        ("y =$0  a", []),
        ("y = '𝒳', $0é", ["é", "'𝒳', é"]),
        ("y = f(axi$0s=1)", ["f(axis=1)"]),
        ("y = f(a, *$0b)", ["b", "*b", "f(a, *b)"]),
        ("y = x[$0i, j]", ["i", "i, j", "x[i, j]"]),
        ("for $0i in x: pass", ["i"]),
        ("with m as $0n: pass", ["n"]),
        ("def f($0x: int): return x", ["x"]),
        ("def f(x: i$0nt): return x", ["int"]),
        ("def f(x): return lambda $0z: z", ["z", "lambda z: z"]),
        ("@de$0c\ndef f(x): return x", ["dec"]),
        ("def $0f(x): return x", []),
        ("y = f(\n    a,\n    $0b,\n)", ["b", "f(\n    a,\n    b,\n)"]),
        ("y = [$0i for i in x]", ["i", "[i for i in x]"]),
    ],
)
def test_expressions_at_a_position_from_the_inside_out(text: str, expressions: list[str]) -> None:
    assert at(text) == expressions


def test_a_broken_chunk_has_no_expressions() -> None:
    module = Module.parse("y = f(x\n")
    assert expressions_at(module.chunks[0], Position(0, 4)) == ()
