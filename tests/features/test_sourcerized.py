"""Functions written as source: what is offered where, that the text is the function, and how it is
put into a file.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import pytest_asyncio

from jaxsight import same_jaxpr
from jaxsight.features.model import Action
from jaxsight.features.named_function import view_of
from jaxsight.features.virtual_documents.sourcerized import NotSourcerized
from jaxsight.session import Session
from jaxsight.source.text import Edit, Position, Range
from jaxsight.wire.messages.requests import TransformedSource
from tests.features.rendering import cursor
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = '''\
import functools

import jax
import jax.numpy as jnp

WEIGHT = jnp.full(8, 3.0)


def loss(params, x, *, mode="mean"):
    """A scalar.

    Example inputs:
        params: {'w': f32[8]}
        x: f32[3, 8]
    """
    hidden = x * params["w"] + WEIGHT
    squared = jnp.square(hidden)  # a comment
    return squared.mean() if mode == "mean" else squared.sum()


def wide(x):
    """
    Example inputs:
        x: f32[8]
    """
    return jnp.tanh(x)


class Model:
    def __call__(self, x):
        """
        Example inputs:
            self = Model()
            x: f32[8]
        """
        return x + 1


def branch(x):
    """
    Example inputs:
        x: f32[]
    """
    return x if x > 0 else -x
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    root = tmp_path_factory.mktemp("sourcerized")
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    yield session
    await session.aclose()


@pytest.fixture
def path(session: Session, tmp_path: Path) -> str:
    path = str(tmp_path / "model.py")
    session.open(path, MODEL)
    return path


async def actions(session: Session, path: str, text: str) -> list[Action]:
    """The actions of sourcerizing at `$0`."""
    source, position = cursor(text)
    session.change(path, source)
    found = await session.actions(path, Range(position, position))
    return [action for action in found if action.kind.endswith(".sourcerize")]


def at(text: str, mark: str) -> str:
    """The text with `$0` before the first `mark`."""
    return text.replace(mark, "$0" + mark, 1)


def run(text: str, name: str) -> Any:
    """The function that a text defines."""
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    return namespace[name]


def assert_same(text: str, name: str, *inputs: Any) -> None:
    """Run a file, and check that what was put into it is the same program as the original."""
    original, inserted = run(text, name), run(text, f"{name}_jax")
    assert same_jaxpr(jax.make_jaxpr(original)(*inputs), jax.make_jaxpr(inserted)(*inputs)) is None


def edited(text: str, edits: Sequence[Edit]) -> str:
    lines = text.split("\n")

    def offset(position: Position) -> int:
        return sum(len(line) + 1 for line in lines[: position.line]) + position.column

    for edit in sorted(edits, key=lambda edit: edit.range, reverse=True):
        text = text[: offset(edit.range.start)] + edit.text + text[offset(edit.range.end) :]
    return text


async def test_inside_a_function_its_source_is_offered(session: Session, path: str) -> None:
    found = await actions(session, path, at(MODEL, "squared = "))
    assert [action.title for action in found] == [
        "Sourcerize loss (expand to pure lax source)",
        "Sourcerize loss (readable source)",
        "Sourcerize loss into loss_jax below it",
    ]
    assert [action.arguments for action in found] == [
        (path, "loss", "lax"),
        (path, "loss", "pretty"),
        (),
    ]


async def test_on_its_name_transformations_are_offered_and_a_gradient_for_a_scalar(
    session: Session, path: str
) -> None:
    await view_of(session.engine, path, "loss")
    await view_of(session.engine, path, "wide")
    found = await actions(session, path, at(MODEL, "loss(params"))
    transforms = [action.arguments[3] for action in found if len(action.arguments) == 4]
    assert transforms[:6] == ["grad", "grad", "vmap", "vmap", "jit", "jit"]
    assert "Sourcerize grad(loss)" in {action.title for action in found}
    found = await actions(session, path, at(MODEL, "wide(x)"))
    transforms = [action.arguments[3] for action in found if len(action.arguments) == 4]
    assert "grad" not in transforms
    assert "vmap" in transforms


async def test_nothing_is_offered_for_what_fails_or_has_no_inputs(
    session: Session, path: str
) -> None:
    with pytest.raises(LookupError):
        await session.show(path, "branch")
    assert await actions(session, path, at(MODEL, "branch(x)")) == []
    plain = "def f(x):\n    return $0x\n"
    assert await actions(session, path, plain) == []


@pytest.mark.parametrize("style", ["lax", "pretty"])
async def test_source_is_the_function(session: Session, path: str, style: str) -> None:
    shown = await session.show(path, "loss", TransformedSource(style))
    assert shown.title == f"loss.{style}.py"
    written, original = run(shown.text, "loss"), run(MODEL, "loss")
    inputs = {"w": jnp.arange(8.0)}, jnp.ones((3, 8))
    assert written(*inputs) == original(*inputs)
    gradients = [jax.grad(function)(*inputs)["w"] for function in (written, original)]
    np.testing.assert_array_equal(*gradients)


async def test_lines_lead_to_the_users_expressions_where_they_stand_now(
    session: Session, path: str
) -> None:
    shown = await session.show(path, "loss", TransformedSource())
    lines = shown.text.split("\n")

    def places(text: str, after: Any) -> set[tuple[str, str]]:
        where = text.split("\n")
        return {
            (
                lines[link.line].split("lax.")[-1].partition("(")[0],
                where[link.range.start.line][link.range.start.column : link.range.end.column],
            )
            for link in after.links
            if link.range is not None
        }

    found = places(MODEL, shown)
    assert ("mul", 'x * params["w"]') in found
    assert ("add", 'x * params["w"] + WEIGHT') in found
    assert ("reduce_sum", "squared.mean()") in found
    moved = "# one line more\n" + MODEL.replace("# a comment", "")
    session.change(path, moved)
    again = await session.show(path, "loss", TransformedSource())
    assert not again.stale
    assert places(moved, again) == found


@pytest.mark.parametrize(
    ("transform", "name"),
    [("grad", "loss_grad"), ("value_and_grad", "loss_value_and_grad"), ("vmap", "loss_vmap")],
)
async def test_transformation_is_written_under_a_name_of_its_own(
    session: Session, path: str, transform: str, name: str
) -> None:
    shown = await session.show(path, "loss", TransformedSource("lax", transform=transform))
    assert shown.title == f"{transform}(loss).lax.py"
    assert callable(run(shown.text, name))


async def test_what_cannot_be_transformed_says_why(session: Session, path: str) -> None:
    with pytest.raises(
        NotSourcerized, match=r"^tracing grad\(wide\) failed: .* shape \(8,\) \(JX443\)"
    ):
        await session.show(path, "wide", TransformedSource("lax", transform="grad"))
    text = MODEL.replace("x: f32[8]\n", "x: i32[8]\n")
    session.change(path, text)
    with pytest.raises(
        NotSourcerized, match="has no positional argument that is all floating point"
    ):
        await session.show(path, "wide", TransformedSource("lax", transform="value_and_grad"))


async def test_too_large_constants_become_arguments_or_an_error(
    session: Session, path: str
) -> None:
    head = "import numpy as np\nTABLE = np.random.default_rng(0).normal(size=2**19).astype('f4')\n"
    text = head + MODEL.replace("+ WEIGHT", "+ TABLE[:8] + TABLE.sum() * jnp.asarray(TABLE)[3]")
    session.change(path, text)
    shown = await session.show(path, "loss", TransformedSource())
    assert len(shown.text) < 10_000
    with pytest.raises(NotSourcerized, match="2,097,152 bytes"):
        await session.show(path, "loss", TransformedSource(constants="inline"))


async def test_source_is_put_below_the_function_with_what_it_imports(
    session: Session, path: str
) -> None:
    session.change(path, MODEL)
    text = edited(MODEL, await session.resolve(path, "loss"))
    before, _, after = text.partition("\ndef wide")
    assert after == MODEL.partition("\ndef wide")[2]
    head = before.partition("WEIGHT")[0]
    assert head == "import functools\n\nimport jax\nimport jax.numpy as jnp\n\n"
    assert "\n\n\ndef loss_jax(params, x, *, mode=" in before
    assert before.endswith("\n\n")
    assert not before.endswith("\n\n\n")
    inserted = before.partition("def loss_jax")[2]
    assert "lax." not in inserted  # the readable style, as beside the file
    assert_same(text, "loss", {"w": jnp.arange(8.0)}, jnp.ones((3, 8)))


async def test_second_insertion_has_names_of_its_own_and_no_second_import(
    session: Session, path: str
) -> None:
    once = edited(MODEL, await session.resolve(path, "loss"))
    changed = once.replace("jnp.full(8, 3.0)", "jnp.full(8, 4.0)", 1)
    session.change(path, changed)
    twice = edited(changed, await session.resolve(path, "loss"))
    assert twice.count("import jax.numpy as jnp\n") == 1
    inputs = {"w": jnp.arange(8.0)}, jnp.ones((3, 8))
    assert run(twice, "loss_jax")(*inputs) == run(MODEL, "loss")(*inputs)
    assert run(twice, "loss_jax_2")(*inputs) == run(changed, "loss")(*inputs)


async def test_method_is_put_below_its_class(session: Session, path: str) -> None:
    text = edited(MODEL, await session.resolve(path, "Model.__call__"))
    assert "        return x + 1\n\n\ndef Model_call_jax(self, x):\n" in text


async def test_insertion_that_would_change_a_name_is_refused(session: Session, path: str) -> None:
    text = MODEL.replace("import functools", "lax = None")
    session.change(path, text.replace("jnp.tanh(x)", "jax.lax.top_k(x, 2)"))
    with pytest.raises(NotSourcerized, match="the file already defines lax"):
        await session.resolve(path, "wide")


async def test_last_function_of_a_file_without_a_last_line_end(session: Session, path: str) -> None:
    text = MODEL.partition("\n\nclass Model")[0].rstrip("\n")
    session.change(path, text)
    assert edited(text, await session.resolve(path, "wide")).endswith(
        "\n\n\ndef wide_jax(x):\n    return jnp.tanh(x)"
    )


async def test_types_of_the_file_itself_are_not_imported_into_it(
    session: Session, path: str
) -> None:
    pair = '''

class Pair(NamedTuple):
    first: jax.Array
    second: jax.Array


def doubled(x):
    """
    Example inputs:
        x: f32[8]
    """
    return Pair(x, x * 2)
'''
    text = MODEL.replace("import functools\n", "from typing import NamedTuple\n") + pair
    session.change(path, text)
    put = edited(text, await session.resolve(path, "doubled"))
    assert "return Pair(first=x, second=" in put
    assert f"import {Path(path).stem}\n" not in put
    made = run(put, "doubled_jax")(jnp.arange(8.0))
    assert type(made).__name__ == "Pair"
    assert_same(put, "doubled", jnp.arange(8.0))


TABLE = """
import jax
import numpy as np

TABLE = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0], np.float32)


@jax.jit
def scaled(x):
    return x * TABLE


def both(x):
    \"""
    Example inputs:
        x: f32[8]
    \"""
    return scaled(x) + scaled(x + 1)
"""


async def test_a_second_insertion_has_constants_of_its_own(session: Session, path: str) -> None:
    session.change(path, TABLE)
    once = edited(TABLE, await session.resolve(path, "both"))
    assert "_CONSTANT = " in once
    changed = once.replace("[3.0, 1.0, 4.0,", "[2.0, 7.0, 1.0,", 1)
    session.change(path, changed)
    twice = edited(changed, await session.resolve(path, "both"))
    assert "_CONSTANT_2 = " in twice
    x = jnp.arange(8.0)
    np.testing.assert_array_equal(run(twice, "both_jax")(x), run(TABLE, "both")(x))
    np.testing.assert_array_equal(run(twice, "both_jax_2")(x), run(changed, "both")(x))


async def test_helper_of_a_name_that_the_file_has_is_renamed(session: Session, path: str) -> None:
    text = TABLE.replace("TABLE", "KNOWN").replace("* KNOWN", "* 2") + "\n\nscaled = None\n"
    text = text.replace("def scaled", "def scaled_", 1).replace("scaled(x", "scaled_(x")
    session.change(path, text)
    put = edited(text, await session.resolve(path, "both"))
    assert run(put, "scaled") is None
    assert_same(put, "both", jnp.arange(8.0))


async def test_import_that_is_written_otherwise_is_the_same(session: Session, path: str) -> None:
    text = MODEL.replace("import jax.numpy as jnp", "from jax import numpy as jnp")
    session.change(path, text)
    put = edited(text, await session.resolve(path, "wide"))
    assert "import jax.numpy as jnp" not in put
    assert_same(put, "wide", jnp.arange(8.0))


async def test_imports_are_put_below_the_docstring(session: Session, path: str) -> None:
    text = (
        '"""A file without imports."""\n\n\n'
        'def f(x):\n    """\n    Example inputs:\n        x: f32[8]\n    """\n    return x.at[0].set(2)\n'
    )
    session.change(path, text)
    put = edited(text, await session.resolve(path, "f"))
    assert put.startswith('"""A file without imports."""\n')
    assert_same(put, "f", jnp.arange(8.0))


async def test_insertion_that_would_read_a_name_of_the_file_for_a_builtin_is_refused(
    session: Session, path: str
) -> None:
    text = MODEL.replace("import functools", "ValueError = None")
    session.change(path, text)
    with pytest.raises(NotSourcerized, match="the file already defines ValueError"):
        await session.resolve(path, "loss")
