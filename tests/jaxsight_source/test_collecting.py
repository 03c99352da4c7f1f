"""Python looks for garbage after a function was written as it did before."""

from __future__ import annotations

import gc

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsight
from jaxsight_source.errors import TooLarge

LARGE = jnp.asarray(np.random.default_rng(0).normal(size=400_000))


def test_writing_leaves_the_collector_on() -> None:
    jaxsight.sourcerize(jnp.sin)(1.0)
    assert gc.isenabled()


def test_a_function_that_cannot_be_written_leaves_the_collector_on() -> None:
    with pytest.raises(TooLarge):
        jaxsight.sourcerize(lambda x: x * LARGE)(1.0)
    assert gc.isenabled()


def test_writing_leaves_the_collector_off_where_it_was() -> None:
    gc.disable()
    try:
        jaxsight.sourcerize(jnp.sin)(1.0)
        assert not gc.isenabled()
    finally:
        gc.enable()
