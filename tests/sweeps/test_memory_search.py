"""The largest size that fits is found with few compiles, and never wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.sweeps.memory_search import MOST_COMPILES, MemorySearch
from jaxsight.sweeps.points import LargestSize, Sizes, SweepPoint, SweptSize

GIB = 2**30
CAPACITY = 80 * GIB
DOUBLED = SweptSize("B", (1, 2, 4, 8, 16, 32, 64, 128))

OTHER_PROGRAM = "not searched further: its program is another one with each n"

Memory = Callable[[int], int]


def point(sizes: Sizes, needed: int, program: str = "mul") -> SweepPoint:
    return SweepPoint(
        sizes,
        kernel_count=1,
        temp_bytes=needed,
        argument_bytes=0,
        output_bytes=0,
        program=(program,),
    )


def found(memory: Memory, size: SweptSize = DOUBLED, capacity: int = CAPACITY) -> LargestSize:
    """The result of a search, whose points the memory is computed for."""
    search = MemorySearch.of(size, [point({"B": n}, memory(n)) for n in size.values], capacity)
    while (sizes := search.following()) is not None:
        search.take(point(sizes, memory(sizes["B"])))
    return search.largest()


def padded(size: int, to: int = 256) -> int:
    return -(-size // to) * to


@pytest.mark.parametrize(
    ("memory", "compiles"),
    [
        (lambda n: 3 * 2**20 * n + 5 * 2**20, 2),
        (lambda n: padded(1236 * n) + padded(4 * n * n) + 8 * n, 4),
        (lambda n: 4 * n**3 + 2**20 * n, 6),
        (lambda n: padded(7700 * n) + padded(4 * n) + padded(131 * n), 4),
        (lambda n: 2**20 * n * (1 if n < 3000 else 2), MOST_COMPILES),
    ],
    ids=["linear", "quadratic", "cubic", "padded", "leaps"],
)
def test_the_largest_size_is_exact(memory: Memory, compiles: int) -> None:
    largest = found(memory)
    assert largest.is_exact
    assert largest.size is not None
    assert memory(largest.size) <= CAPACITY < memory(largest.size + 1)
    assert largest.compiles <= compiles


@given(
    slope=st.integers(1, 2**24),
    square=st.integers(0, 2**10),
    offset=st.integers(0, 2**32),
    alignment=st.sampled_from([1, 16, 64, 256]),
    first=st.integers(1, 64),
)
def test_a_search_is_never_wrong(
    slope: int, square: int, offset: int, alignment: int, first: int
) -> None:
    def memory(n: int) -> int:
        return padded(slope * n, alignment) + padded(square * n * n, alignment) + offset

    largest = found(memory, SweptSize("B", (first, first + 1)))
    assert largest.compiles <= MOST_COMPILES
    if largest.size is not None:
        assert memory(largest.size) <= CAPACITY
    if largest.too_large is not None:
        assert memory(largest.too_large) > CAPACITY
    assert largest.is_exact == (largest.size is not None and largest.too_large == largest.size + 1)


def test_sizes_keep_their_distance() -> None:
    def memory(n: int) -> int:
        assert n % 8 == 0
        return 2**20 * n

    largest = found(memory, SweptSize("B", (8, 16, 32), 8))
    assert (largest.size, largest.too_large, largest.is_exact) == (81920, 81928, True)


def test_a_function_that_divides_its_size_is_searched_at_common_distances() -> None:
    size = SweptSize("B", (8, 24, 40))
    search = MemorySearch.of(size, [point({"B": n}, GIB * n) for n in size.values], 70 * GIB)
    while (sizes := search.following()) is not None:
        divides = sizes["B"] % 8 == 0
        search.take(
            point(sizes, GIB * sizes["B"]) if divides else SweepPoint(sizes, "cannot be traced")
        )
    largest = search.largest()
    assert (largest.size, largest.too_large, largest.is_exact) == (56, 72, True)


def test_a_size_that_cannot_be_traced_ends_the_search_with_the_reason() -> None:
    size = SweptSize("B", (1, 2))
    search = MemorySearch.of(size, [point({"B": n}, GIB * n) for n in size.values], CAPACITY)
    while (sizes := search.following()) is not None:
        search.take(SweepPoint(sizes, "cannot be traced: TypeError"))
    largest = search.largest()
    assert (largest.size, largest.is_exact) == (2, False)
    assert largest.reason == "B=80: cannot be traced: TypeError"


def test_programs_that_the_compiler_rejects_as_too_large_do_not_fit() -> None:
    def compiled(sizes: Sizes) -> SweepPoint:
        n = sizes["B"]
        return point(sizes, GIB * n) if n <= 77 else SweepPoint(sizes, "RESOURCE_EXHAUSTED", True)

    search = MemorySearch.of(DOUBLED, [compiled({"B": n}) for n in DOUBLED.values], CAPACITY)
    while (sizes := search.following()) is not None:
        search.take(compiled(sizes))
    assert (search.largest().size, search.largest().too_large) == (77, 78)


def test_nothing_fits() -> None:
    largest = found(lambda n: CAPACITY + n)
    assert (largest.size, largest.too_large) == (None, 1)


def test_there_is_no_largest_size_without_growth() -> None:
    for memory in (lambda n: GIB, lambda n: GIB + min(n, 100)):
        largest = found(memory)
        assert largest.compiles <= 2
        assert not largest.is_exact
        assert largest.reason == "its memory does not grow with B"
    padded_to_eight = found(lambda n: padded(n, 8) * GIB, SweptSize("B", (1, 2)))
    assert padded_to_eight.reason == ""
    assert (padded_to_eight.size or 0) > 72


def test_a_loop_that_python_unrolls_is_not_searched() -> None:
    points = [point({"n": n}, n, program=f"{n} loops") for n in (1, 2, 3)]
    search = MemorySearch.of(SweptSize("n", (1, 2, 3)), points, CAPACITY)
    assert search.following() is None
    assert search.largest().reason == OTHER_PROGRAM


def test_a_loop_that_python_unrolls_further_ends_the_search() -> None:
    search = MemorySearch.of(SweptSize("n", (4,)), [point({"n": 4}, 4, "4 loops")], CAPACITY)
    assert search.following() == {"n": 8}
    search.take(point({"n": 8}, 8, "8 loops"))
    assert search.following() is None
    assert search.largest().reason == OTHER_PROGRAM


def test_a_special_case_of_the_smallest_size_does_not_end_the_search() -> None:
    points = [point({"n": n}, GIB * n, "one" if n == 1 else "mul") for n in (1, 2, 3)]
    assert MemorySearch.of(SweptSize("n", (1, 2, 3)), points, CAPACITY).following() == {"n": 80}


def test_other_sizes_stay_as_they_are() -> None:
    points = [point({"B": n, "L": 128}, GIB * n) for n in (1, 2)]
    search = MemorySearch.of(SweptSize("B", (1, 2)), points, CAPACITY)
    assert search.following() == {"B": 80, "L": 128}
    assert search.largest().sizes == {"B": 2, "L": 128}
