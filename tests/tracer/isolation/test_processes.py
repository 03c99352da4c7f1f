"""Code sees the process of a job that a request names: each way to ask, in programs alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import FakeProcess
from tests.tracer.isolation.driver import Driver

SECOND = FakeProcess(1, 4)

ASKS = """\
import jax
import jax.numpy as jnp
from jax import process_count

MESH = jax.make_mesh((8,), ("data",))
INDEX = jax.process_index()


def f(x):
    return x + {asked}
"""


@pytest.fixture(scope="module")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(tmp_path_factory.mktemp("project"))
    yield driver
    driver.close()


def added(tracer: Driver, asked: str, process: FakeProcess | None) -> str:
    """The number that a function adds to its argument."""
    request = tracer.request(ASKS.format(asked=f"float({asked})"), file=f"{abs(hash(asked))}.py")
    tracer.send(replace(request, process=process))
    answer = tracer.answer()
    assert isinstance(answer, Traced), answer
    return answer.jaxpr.partition("= add a ")[2].partition(":")[0]


@pytest.mark.parametrize(
    ("asked", "number"),
    [
        ("INDEX", "1.0"),
        ("jax.process_index()", "1.0"),
        ("process_count()", "4.0"),
        ("max(jax.process_indices())", "3.0"),
        ("jax.local_device_count()", "2.0"),
        ("jax.local_devices()[0].id", "2.0"),
        ("jax.local_devices(process_index=3)[-1].id", "7.0"),
        ("sum(d.process_index == jax.process_index() for d in jax.devices())", "2.0"),
        ("jax.devices()[-1].process_index", "3.0"),
        ("len(jax.devices())", "8.0"),
    ],
)
def test_programs_see_the_process(tracer: Driver, asked: str, number: str) -> None:
    assert added(tracer, asked, SECOND) == number


def test_jax_runs_as_the_only_process(tracer: Driver) -> None:
    text = """\
    import jax
    import jax.numpy as jnp
    from jax.experimental import multihost_utils

    KNOWN = multihost_utils.broadcast_one_to_all(jnp.ones(4))

    def f(x):
        assert jax.process_count() == 4
        return x + KNOWN
    """
    tracer.send(replace(tracer.request(text), process=SECOND))
    assert isinstance(tracer.answer(), Traced)


def test_without_a_process_the_answers_are_the_true_ones(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    assert added(driver, "jax.process_index()", None) == "0.0"
    assert added(driver, "process_count()", None) == "1.0"
    assert added(driver, "jax.local_devices()[-1].id", None) == "7.0"
    assert driver.close() == 0
