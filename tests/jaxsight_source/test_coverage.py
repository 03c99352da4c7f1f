"""The page that tells how each primitive is written is made of what is recorded, and that holds for
the newest JAX.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest

from jaxsight_source.api import write
from tests.jaxsight_source import coverage
from tests.jaxsight_source.harnesses import arguments, load_harnesses

ROOT = Path(__file__).parents[2]
RECORDED = json.loads(coverage.RECORDED.read_text(encoding="utf-8"))
HERE = RECORDED["primitives"].get(jax.__version__)
"""What is recorded of the JAX that the tests run on, if anything: the newest of each Python."""

SMALL = ("add", "sin", "fft", "iota", "scatter_add", "sort", "cumsum", "select_n", "argmax", "qr")
"""Groups of harnesses that are written anew."""

needs_record = pytest.mark.skipif(HERE is None, reason="another version of JAX is recorded")


def test_the_page_shows_what_is_recorded() -> None:
    page = coverage.PAGE.read_text(encoding="utf-8")
    assert coverage.rendered(page, RECORDED) == page
    assert "source/sourcerize-coverage.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@needs_record
def test_each_primitive_of_this_jax_has_its_row() -> None:
    known = coverage.lowered()
    assert known.keys() & HERE["written"].keys()
    missing = [known[name][0] for name in known.keys() - HERE["written"].keys()]
    assert not coverage.homes(
        missing
    )  # those of other packages, which tests import, are of no module of JAX's


@needs_record
@pytest.mark.filterwarnings("ignore")
def test_public_names_that_the_page_tells_of_exist() -> None:
    told = {
        shown.removesuffix("(…)").removesuffix(f".{coverage.BIND}").lstrip("@")
        for ways in HERE["written"].values()
        for shown in ways
    }
    names = {name for name in told if name.startswith(("lax.", "jnp.", "primitives."))}
    assert len(names) > 150
    for name in names:
        coverage.resolved(name)


@needs_record
@pytest.mark.filterwarnings("ignore")
def test_harnesses_are_written_as_the_page_tells() -> None:
    seen = set()
    for harness in load_harnesses():
        if harness.group_name in SMALL and harness.group_name not in seen:
            seen.add(harness.group_name)
            written = write(harness.dyn_fun, tuple(arguments(harness)), {})
            for primitive, shown in coverage.spellings(written):
                assert shown in HERE["written"][primitive], primitive
    assert seen == set(SMALL)
