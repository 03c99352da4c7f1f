"""The inverse of a function as a virtual document."""

from __future__ import annotations

import pytest
import pytest_asyncio

from jaxsight.features.named_function import view_of
from jaxsight.features.virtual_documents.sourcerized import NotSourcerized
from jaxsight.session import Session
from jaxsight.wire.messages.requests import TransformedSource

MODEL = '''\
import jax.numpy as jnp


def squash(x):
    """
    Example inputs:
        x: f32[3]
    """
    h = jnp.tanh(x)
    return jnp.exp(h) * 2


def norm(x):
    """
    Example inputs:
        x: f32[3]
    """
    y = x * x
    return jnp.sqrt(jnp.sum(y))
'''
INVERSE = TransformedSource("lax", transform="inverse")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def path(session: Session, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("inverses") / "model.py")
    session.open(path, MODEL)
    await view_of(session.engine, path, "squash")
    await view_of(session.engine, path, "norm")
    return path


async def test_lines_of_the_inverse_lead_to_the_operations_that_they_undo(
    session: Session, path: str
) -> None:
    shown = await session.show(path, "squash", INVERSE)
    lines = shown.text.split("\n")
    source = MODEL.split("\n")
    undone = {
        lines[link.line].strip(): source[link.range.start.line][
            link.range.start.column : link.range.end.column
        ]
        for link in shown.links
        if link.range is not None
    }
    by_operation = {
        line.partition("lax.")[2].partition("(")[0]: text for line, text in undone.items()
    }
    assert by_operation == {"div": "jnp.exp(h) * 2", "log": "jnp.exp(h)", "atanh": "jnp.tanh(x)"}


async def test_operation_without_an_inverse_is_told_with_the_files_line(
    session: Session, path: str
) -> None:
    with pytest.raises(NotSourcerized) as caught:
        await session.show(path, "norm", INVERSE)
    assert str(caught.value).split("\n") == [
        "norm cannot be inverted: reduce_sum adds elements up, and many operands have the same sum",
        f'  File "{path}", line 19',
        "    return jnp.sqrt(jnp.sum(y))",
    ]
