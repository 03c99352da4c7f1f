"""JX206: the same work is done several times independently, and all its temporaries may be live at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import MIB, size

RULE = Rule(
    "JX206",
    "parallel-branches",
    "Independent branches have large temporaries at once.",
    severity="information",
)
LEAST = 3
LARGE = MIB // 2
_HEAVY = frozenset({"fft", "dot_general", "conv_general_dilated", "sort"})


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Three or more equal heavy equations of one line that do not wait for one another, whose results the target holds at once."""
    if reading.compiled is None:
        return
    flow = reading.flow
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for path, step in flow.steps.items():
        if (
            step.primitive in _HEAVY
            and step.span is not None
            and not step.backward
            and "/" not in path.replace("/body/", ".")
        ):
            kind = step.primitive, step.span, step.parameters, flow.value(step.results[0]).text
            groups[kind].append(path)
    temporaries = reading.compiled.memory.temporaries
    for paths in sorted(groups.values(), key=lambda each: -_bytes(reading, each)):
        one = flow.value(flow.steps[paths[0]].results[0])
        if len(paths) < LEAST or one.bytes < LARGE or temporaries < len(paths) * one.bytes:
            continue
        if not _independent(reading, paths) or not _in_turn(reading, paths):
            continue
        yield Noticed(
            f"{reading.quoted(paths[0])} is computed {len(paths)} times independently, each with {size(one.bytes)} of results, and "
            f"{size(temporaries)} of temporaries are live at once: a `jax.lax.fori_loop`, or "
            "`jax.lax.optimization_barrier` between them, makes them take turns.",
            paths[0],
        )
        return  # the others are parts of the same branches


def _bytes(reading: Reading, paths: list[str]) -> int:
    return sum(reading.flow.value(reading.flow.steps[path].results[0]).bytes for path in paths)


def _independent(reading: Reading, paths: list[str]) -> bool:
    """Whether none of the first few comes from another one."""
    flow = reading.flow
    few = set(paths[:4])
    for path in paths[:4]:
        for number in flow.steps[path].operands:
            above = flow.above(number, lambda step: True, most=2000)
            if any(step.path in few and step.path != path for step in above):
                return False
    return True


def _in_turn(reading: Reading, paths: list[str]) -> bool:
    """Whether each branch meets the others in one place: what is needed in several is kept, whoever is first."""
    flow = reading.flow
    branches: dict[int, int] = {}
    for index, path in enumerate(paths):
        branches.update((number, 1 << index) for number in flow.steps[path].results)
    meetings: Counter[int] = Counter()
    started = set(paths)
    for step in flow.steps.values():
        if step.path in started:
            continue
        given = {branches.get(flow.of(number), 0) for number in step.operands} - {0}
        whole = 0
        for each in given:
            whole |= each
        if len(given) > 1:
            meetings.update(each for each in given if each.bit_count() == 1)
        branches.update((number, whole) for number in step.results if whole)
    return all(count <= 1 for count in meetings.values())
