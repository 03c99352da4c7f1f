"""Dimensions have the names that they depend on, and never a wrong one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.queries.sizes import samples
from jaxsight.queries.sizes.naming import chooser, explanations, named
from jaxsight.session import Session
from tests.quiet import QUIET
from tools.size_names.functions import module
from tools.size_names.measure import measured

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERY = 20
"""The part of the functions that is measured here; `python -m tools.size_names` measures all."""

SIZES = st.dictionaries(st.sampled_from("BDHKLN"), st.integers(1, 70), min_size=1, max_size=5)
FORMULAS = (
    "{a}", "{b}", "3*{a}", "{a}+1", "2*{a}-1", "{a}*{b}", "{a}+{b}-1", "{a}//2", "({a}+1)//2",
    "{a}//{b}", "min({a},{b})", "{a}*{b}+1", "{a}%3+1", "{a}**2", "{a}*({a}+1)//2", "min({a},8)",
)  # fmt: skip
"""How dimensions depend on sizes, also in ways that have no name."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = Session()
    root = tmp_path_factory.mktemp("sizes")
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    yield session
    await session.aclose()


async def test_no_name_is_wrong_for_sizes_that_were_not_tried(
    session: Session, tmp_path: Path
) -> None:
    path = str(tmp_path / "calls.py")
    session.open(path, module(EVERY))
    results = [
        await measured(session, path, name) for name in session.engine.documents.functions(path)
    ]
    session.close(path)
    traced = [result for result in results if result is not None]
    assert len(traced) > 15
    assert [wrong for result in traced for wrong in result.wrong] == []
    assert sum(result.named for result in traced) > 2 * sum(result.numbers for result in traced)
    assert sum(result.checks for result in traced) > len(traced)


@settings(max_examples=100, deadline=None)
@given(sizes=SIZES, formula=st.sampled_from(FORMULAS), data=st.data())
async def test_a_formula_that_is_chosen_is_right_for_other_sizes(
    sizes: dict[str, int], formula: str, data: st.DataObject
) -> None:
    names = data.draw(st.permutations(sorted(sizes)))
    formula = formula.format(a=names[0], b=names[-1])
    level = data.draw(st.sampled_from(samples.levels(sizes)[:2]))
    unordered = [r for r in level if not isinstance(r, samples.Ordered)]
    tried = [
        sizes,
        samples.sample(sizes, level, 0),
        samples.sample(sizes, unordered, 0),
        samples.sample(sizes, [], 0, least=97),
    ]
    dims = [value(formula, one) for one in tried]
    known = [samples.sample(sizes, [], seed) for seed in range(5)]
    chosen = chooser(sorted(sizes), tried, known)(dims)
    if chosen:
        for seed in range(5, 9):
            other = samples.sample(sizes, [], seed)
            assert value(chosen, other) == value(formula, other), (chosen, formula, tried)


@given(sizes=SIZES, seed=st.integers(0, 4))
async def test_samples_differ_from_the_given_sizes_and_keep_their_order(
    sizes: dict[str, int], seed: int
) -> None:
    order, *_ = samples.levels(sizes)
    other = samples.sample(sizes, order, seed)
    assert other.keys() == sizes.keys()
    assert len({*other.values()}) == len(other)
    assert not {*other.values()} & {*sizes.values()}


async def test_coincidences_have_no_name() -> None:
    one, other = {"B": 4, "H": 4}, {"B": 8, "H": 8}
    assert {f.text for f in explanations(["B", "H"], [one, other], [4, 8])} >= {"B", "H"}
    assert chooser(["B", "H"], [one, other], [{"B": 3, "H": 5}])([4, 8]) == ""
    tried = [one, other, {"B": 3, "H": 5}, {"B": 7, "H": 2}]
    assert chooser(["B", "H"], tried, [{"B": 9, "H": 4}])([4, 8, 3, 7]) == "B"
    # It is `B//K`; `D-K+2` fits the two numbers that there are.
    sizes = [(4, 16, 6), (3, 13, 5), (13, 3, 11), (109, 97, 107)]
    tried = [dict(zip("KBD", row, strict=True)) for row in sizes]
    assert chooser(["B", "D", "K"], tried, [])([4, 4, 0, 0]) == ""


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["f32[2,8]", "f32[3,8]"], "f32[B,8]"),
        (["f32[2@data,8@(a,b)]", "f32[3@data,8@(a,b)]"], "f32[B@data,8@(a,b)]"),
        (["{'w': f32[2], 'n': 2}", "{'w': f32[3], 'n': 3}"], "{'w': f32[B], 'n': 2}"),
        (["key<fry>[2]", "key<fry>[3]"], "key<fry>[B]"),
        (["(f32[2], f32[8,2])", "(f32[3], f32[8,3])"], "(f32[B], f32[8,B])"),
        (["f32[2]", "f32[3,1]"], "f32[2]"),
        (["f32[2]", "f32[]"], "f32[2]"),
        (["(f32[], f32[2])", "(f32[3], f32[])"], "(f32[], f32[2])"),
        (["f32[2]", "f16[3]"], "f32[2]"),
        (["Model('f32[2]', f32[2])", "Model('f32[3]', f32[3])"], "Model('f32[2]', f32[B])"),
    ],
)
async def test_names_in_types(texts: list[str], shown: str) -> None:
    assert named(texts, lambda numbers: "B" if tuple(numbers) == (2, 3) else "") == shown


def value(formula: str, sizes: Mapping[str, int]) -> int:
    return int(eval(formula, {"min": min, "max": max}, dict(sizes)))
