"""A sample of JAX's own primitive harnesses comes out as the same programs, with the same bits."""

from __future__ import annotations

import pytest

from tests.jaxsight_source.harnesses import load_harnesses, round_trip, sample
from tests.searches import part

ONE_IN = 60
"""Some hundred and forty harnesses: each group once, large groups more often."""


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_harnesses():
    held = sample(load_harnesses(), ONE_IN)
    assert len(held) > 120
    outcomes = [round_trip(harness) for harness in part(held)]
    failed = [outcome for outcome in outcomes if outcome.stage not in ("ok", "unrunnable")]
    assert not failed
