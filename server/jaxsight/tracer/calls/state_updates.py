"""The state that a call updates: what it changed, as results, and what it replaced, as inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import jax

from jaxsight.tracer.calls.leaves import ArraysIn, abstract, is_array, is_number
from jaxsight.tracer.compat import leaks
from jaxsight.tracer.states import mutable_contents, nnx
from jaxsight.tracer.states.mutable_contents import GONE
from jaxsight.tracer.states.watch import Change, Watch

_SELF = ("self", "cls")

_LARGEST = 4_096
"""Objects in a value that are searched for arrays: those beyond count as unchanged."""

Output = TypeVar("Output")


@dataclass(slots=True)
class Outcome:
    """Results of the last call besides arrays.

    `structure` is that of its return value, `texts` has the texts of leaves that are not arrays, by
    index; `count` is the number of returned arrays, which start at output `start`.
    `updates` are the names of values that it updated in place, `left_out` of those that are not
    outputs.
    """

    structure: jax.tree_util.PyTreeDef = None
    texts: dict[int, str] = field(default_factory=dict)
    start: int = 0
    markers: int = 0
    """Number of leading results that only the library's `jit` has; `start` does not count them."""
    count: int = 0
    updates: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def in_order(self, outputs: Sequence[Output]) -> list[Output]:
        """Return the outputs in the order of `StatefulCall`: returned ones, then updates."""
        end = self.start + self.count
        return [*outputs[self.start : end], *outputs[: self.start], *outputs[end:]]


@dataclass(frozen=True, slots=True)
class Lift:
    """A value that a call replaces: its arrays become inputs."""

    change: Change
    old: ArraysIn


class Updates:
    """Updates of a call, by the user's names.

    Args:
        returns: whether the call's state is part of the program; else a library drops it.
    """

    def __init__(self, returns: bool = True) -> None:
        self.returns = returns
        self.names: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self.arrays: list[object] = []
        self.parts: dict[str, list[object]] = {}
        """Changes as pytrees, by name."""
        self.lifts: list[Lift] = []

    def note(self, outcome: Outcome) -> None:
        outcome.updates = tuple(self.names)
        outcome.left_out = tuple(self.left_out)

    def add_all(self, watch: Watch) -> None:
        for change in watch.changes():
            self.add(change)
        # Other values in a container that the call changes are state too, not constants.
        unchanged = (
            _lift(change, set()) for change in watch.beside([lift.change for lift in self.lifts])
        )
        self.lifts += [lift for lift in unchanged if lift is not None]

    def add_graph(self, owner: str, change: nnx.NodeChange) -> None:
        for path, _ in change.changed:  # an attribute of `self`, such as `self.count`, or `model`
            first = path.partition(".")[0]
            is_attribute = owner in _SELF and first.isidentifier()
            self.names[f"{owner}.{first}" if is_attribute else owner] = None
        if change.structural and not change.changed:
            self.names[owner] = self.left_out[owner] = None
        self.arrays += change.arrays
        if change.changed:
            self.parts.setdefault(owner, []).append(dict(change.changed))

    def add(self, change: Change) -> None:
        new = _arrays(change.new)
        old = {id(leaf) for leaf in _arrays(change.old)}
        # JAX raises no error for a leaked tracer until something uses it (`compat/leaks.py`).
        fresh = [leaf for leaf in new if id(leaf) not in old and not leaks.is_leaked(leaf)]
        fresh_ones = set(map(id, fresh))
        if not fresh and not change.counts:
            return
        self.names[change.label] = None
        if not fresh or not self.returns:
            self.left_out[change.label] = None
            return
        self.arrays += fresh
        complete = all(
            leaf in fresh_ones for leaf in map(id, jax.tree_util.tree_leaves(change.new))
        )
        self.parts.setdefault(change.label, []).append(change.new if complete else fresh)
        if (lift := _lift(change, {id(leaf) for leaf in new})) is not None:
            self.lifts.append(lift)


def _lift(change: Change, still_used: set[int]) -> Lift | None:
    if change.old is GONE:
        return None
    structure: object
    leaves, structure = jax.tree_util.tree_flatten(change.old)
    after, structure_after = jax.tree_util.tree_flatten(change.new)
    places = []
    for at, leaf in enumerate(leaves):
        if is_number(leaf):
            # If it becomes an array in the first call, it is one in all later calls.
            if structure == structure_after and is_array(after[at]):
                places.append(at)
        elif (
            is_array(leaf) and not isinstance(leaf, jax.core.Tracer) and id(leaf) not in still_used
        ):
            places.append(at)
    return Lift(change, ArraysIn(structure, leaves, places)) if places else None


def by_label(lifts: Sequence[Lift]) -> dict[str, object]:
    """Return the inputs of lifts by label, as pytrees of abstract arrays if they are complete."""
    inputs: dict[str, list[object]] = {}
    for lift in lifts:
        arrays = list(map(abstract, lift.old.arrays))
        complete = len(arrays) == len(lift.old.leaves)
        value = lift.old.filled(arrays) if complete else arrays
        inputs.setdefault(lift.change.label, []).append(value)
    return one_or_all(inputs)


def one_or_all(parts: dict[str, list[object]]) -> dict[str, object]:
    """Return the only part of each name, or the list of its parts."""
    return {name: values[0] if len(values) == 1 else values for name, values in parts.items()}


def in_order(lifts: Sequence[Lift], state: dict[str, object]) -> Iterator[list[object]]:
    """Yield the arrays of each lift from those by label."""
    arrays = {label: iter(jax.tree_util.tree_leaves(tree)) for label, tree in state.items()}
    for lift in lifts:
        yield [next(arrays[lift.change.label]) for _ in lift.old.places]


def _arrays(value: object) -> list[object]:
    """Return the arrays in a value: in pytrees, and in attributes of other objects."""
    if value is GONE:
        return []
    arrays: list[object] = []
    waiting, visited = [value], dict[int, object]()
    while waiting and len(visited) < _LARGEST:
        pytree = waiting.pop()
        for leaf in jax.tree_util.tree_leaves(pytree):
            if is_array(leaf):
                arrays.append(leaf)
            elif id(leaf) not in visited:
                visited[id(leaf)] = leaf
                waiting += [
                    value
                    for kind, target in mutable_contents.kinds(leaf)
                    if not issubclass(type(leaf), type)
                    for value in kind.read(target)[1]
                ]
    return arrays
