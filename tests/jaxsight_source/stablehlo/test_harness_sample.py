"""A few of JAX's primitive harnesses come back from StableHLO; `stablehlo_harnesses` runs more."""

from __future__ import annotations

import pytest

from tests.jaxsight_source.harnesses import load_harnesses, sample
from tests.jaxsight_source.stablehlo_harnesses import trip

ONE_IN = 25
"""Of one harness of each group, that many: some eight, in seconds."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_few_harnesses():
    chosen = sample(load_harnesses(), 60)[::ONE_IN]
    trips = [trip(harness) for harness in chosen]
    assert not [one for one in trips if one.stage not in ("ok", "unexportable")]
    assert sum(one.stage == "ok" for one in trips) > 5
