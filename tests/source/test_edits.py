"""An edited module is the module that reading the new text from the start would give."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.source.module import Module
from tests.source.texts import edits, heaps


def as_read(module: Module) -> object:
    """All that others see of a module."""
    bindings = module.bindings
    return (
        module.text,
        [(c.first_line, c.last_line, c.id, c.text, c.mark, c.broken) for c in module.chunks],
        [(c.first_line, f) for c, f in module.functions],
        module.syntax_problem,
        module.bindings.future_flags,
        (bindings.definers, bindings.ruled, bindings.origins, bindings.stars),
    )


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_many_edits_end_where_a_fresh_reading_does(data: st.DataObject) -> None:
    text = data.draw(heaps())
    module = Module.parse(text)
    for _ in range(data.draw(st.integers(1, 5))):
        text = data.draw(edits(text))
        module = module.edited(text)
        module.bindings  # noqa: B018  (later modules may take it over)
        assert as_read(module) == as_read(Module.parse(text))


def test_typing_a_function_letter_by_letter_ends_where_a_fresh_reading_does() -> None:
    before = 'import jax\n\n\ndef above(x):\n    """One."""\n    return x\n\n\n'
    after = '\n\ndef below(x):\n    """Two."""\n    return above(x)\n'
    typed = '@jax.jit\ndef typed(x):\n    """It\'s\n    "quoted".\n    """\n    return [\n        x,\n    ]\n'
    module = Module.parse(before + after)
    for length in range(len(typed) + 1):
        text = before + typed[:length] + after
        module = module.edited(text)
        assert as_read(module) == as_read(Module.parse(text))
        assert {"above", "below"} <= {f.qualname for _, f in module.functions}, typed[:length]


def test_an_edit_inside_one_function_keeps_the_other_chunks() -> None:
    text = "".join(f"def f{i}(x):\n    return x + {i}\n\n\n" for i in range(50))
    old = Module.parse(text)
    new = old.edited(text.replace("x + 25", "x * 25"))
    kept = [one is other for one, other in zip(old.chunks, new.chunks, strict=True)]
    assert kept.count(False) <= 3  # the chunk itself; at most its neighbours stand as equal copies
    assert [c.statement is d.statement for c, d in zip(old.chunks, new.chunks, strict=True)].count(
        False
    ) == 1


def test_the_same_text_gives_the_same_module() -> None:
    module = Module.parse("x = 1\r\n")
    assert module.edited("x = 1\n") is module
