"""Represent a call as a function of arrays: its results, then the state that it updates.

A function's changes of its arguments, of globals that its code refers to and of its closure are
part of its result, as if the function took the state and returned it.
Afterwards all objects are restored: no tracer stays behind.
State that the call replaces is also an input, so that it is not a constant.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax

from jaxsight.tracer.calls.inputs import Inputs
from jaxsight.tracer.calls.leaves import ArraysIn, abstract, is_array, is_number
from jaxsight.tracer.calls.parameters import named, with_parameters
from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.compat import traces
from jaxsight.tracer.isolation import mutable_contents
from jaxsight.tracer.isolation.mutable_contents import GONE
from jaxsight.tracer.observation import display
from jaxsight.tracer.states import nnx
from jaxsight.tracer.states.watch import Change, Watch

# The state that a call updates: what it changed, as results, and what it replaced, as inputs.

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
        for change in watch.beside([lift.change for lift in self.lifts]):
            self.lifts += _lift(change, set())

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
        # JAX raises no error for a leaked tracer until something uses it (`compat/traces.py`).
        fresh = [leaf for leaf in new if id(leaf) not in old and not traces.is_leaked(leaf)]
        if not fresh and not change.counts:
            return
        self.names[change.label] = None
        if not fresh or not self.returns:
            self.left_out[change.label] = None
            return
        self.arrays += fresh
        complete = {*map(id, jax.tree_util.tree_leaves(change.new))} <= {*map(id, fresh)}
        self.parts.setdefault(change.label, []).append(change.new if complete else fresh)
        self.lifts += _lift(change, {id(leaf) for leaf in new})


def _lift(change: Change, still_used: set[int]) -> list[Lift]:
    """Return the value that a change replaces, if it has arrays."""
    if change.old is GONE:
        return []
    structure: object
    leaves, structure = jax.tree_util.tree_flatten(change.old)
    after, structure_after = jax.tree_util.tree_flatten(change.new)
    places = []
    for at, leaf in enumerate(leaves):
        if is_number(leaf):
            # If it becomes an array in the first call, it is one in all later calls.
            is_lifted = structure == structure_after and is_array(after[at])
        else:
            is_known = is_array(leaf) and not isinstance(leaf, jax.core.Tracer)
            is_lifted = is_known and id(leaf) not in still_used
        places += [at] if is_lifted else []
    return [Lift(change, ArraysIn(structure, leaves, places))] if places else []


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


def _arrays(value: object) -> list[object]:
    """Return the arrays in a value: in pytrees, and in attributes of other objects."""
    if value is GONE:
        return []
    arrays: list[object] = []
    # Keep the objects alive, so that their ids are not reused.
    waiting, visited = [value], dict[int, object]()
    while waiting and len(visited) < _LARGEST:
        pytree = waiting.pop()
        for leaf in jax.tree_util.tree_leaves(pytree):
            if is_array(leaf):
                arrays.append(leaf)
            elif id(leaf) not in visited:
                visited[id(leaf)] = leaf
                kinds = () if issubclass(type(leaf), type) else mutable_contents.kinds(leaf)
                waiting += [value for kind, target in kinds for value in kind.read(target)[1]]
    return arrays


Returned = TypeVar("Returned")


class StatefulCall:
    """The call of a user's function with `args` and `kwargs`, the traced parts of its inputs.

    The static parts are filled in.
    `outcome` and `lifts` are those of the last call.
    """

    def __init__(
        self,
        user_function: UserFunction,
        inputs: Inputs,
        lifts: Sequence[Lift] = (),
        holders: Sequence[Change] = (),
    ) -> None:
        self.outcome = Outcome()
        self.lifts: list[Lift] = []
        self.user_function = user_function
        self._inputs = inputs
        self._lifted = tuple(lifts)
        # A unique name for each place: `self.model`, then `self.model 2`.
        labels = [holder.label for holder in holders]
        self._holders = {
            label if (number := labels[: at + 1].count(label)) == 1 else f"{label} {number}": holder
            for at, (label, holder) in enumerate(zip(labels, holders, strict=True))
        }
        self._held_state = nnx.split([holder.old for holder in holders])
        self._split = nnx.split((inputs.args, inputs.kwargs))
        self._call = ArraysIn.of(self._split.pure)
        # It is `state`, unless a parameter has that name.
        keyword = "state"
        while keyword in inputs.named or keyword in inputs.kwargs:
            keyword += "_"
        self._state = keyword
        # Static leaves are replaced by `None`, so that JAX names the arrays as in the user's call.
        self.args, self.kwargs = self._call.alone(self._call.arrays)
        held_state = jax.tree_util.tree_map(abstract, self._held_state.pure)
        state = by_label(self._lifted) | dict(zip(self._holders, held_state, strict=True))
        self.extra = {self._state: state} if state else {}
        """State that it also takes, by keyword."""
        self.kwargs = {**self.kwargs, **self.extra}

    def again(self) -> StatefulCall:
        """Return the same call with the state that the last one replaced as inputs."""
        holders = tuple(self._holders.values())
        return StatefulCall(self.user_function, self._inputs, self.lifts, holders)

    @property
    def function(self) -> Callable[..., list[object]]:
        """The call as a function, with the name and the signature of the user's."""

        @functools.wraps(self.user_function.call, updated=())
        def call(*args: object, **kwargs: object) -> list[object]:
            return self(*args, **kwargs)

        return self._with_state(call)

    @property
    def pure(self) -> Callable[..., tuple[object, dict[str, object]]]:
        """The user's function, returning its result and the state that it updates.

        It takes all arguments, and the keyword for state if the call replaces state.
        """

        @functools.wraps(self.user_function.call, updated=())
        def call(*args: object, **kwargs: object) -> tuple[object, dict[str, object]]:
            state = kwargs.pop(self._state) if self.extra else {}
            leaves = jax.tree_util.tree_leaves((args, kwargs), is_leaf=nnx.is_node)
            nodes = [leaf for leaf in leaves if nnx.is_node(leaf)]
            returned, updates = self._run(args, kwargs, nodes, state, lambda returned: returned)
            return returned, one_or_all(updates.parts)

        return self._with_state(call)

    def _with_state(self, call: Callable[..., Returned]) -> Callable[..., Returned]:
        state = inspect.Parameter(self._state, inspect.Parameter.KEYWORD_ONLY)
        return with_parameters(call, self.user_function.call, *[state] if self.extra else [])

    def __call__(self, *args: object, **kwargs: object) -> list[object]:
        """Return all arrays of the call: those that it returns, then those that it updates."""
        state = kwargs.pop(self._state) if self.extra else {}
        pure = self._call.filled(jax.tree_util.tree_leaves((args, kwargs)))
        (args, kwargs), nodes = self._split.merge(pure)
        outcome = Outcome()
        read = functools.partial(_results, outcome=outcome)
        results, updates = self._run(args, kwargs, nodes, state, read)
        updates.note(outcome)
        self.outcome, self.lifts = outcome, updates.lifts
        return [*results, *updates.arrays]

    def _run(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        nodes: list[object],
        state: Any,
        read: Callable[[object], Returned],
    ) -> tuple[Returned, Updates]:
        """Call the function; return `read` of its result, before any restore, and its updates."""
        by_name = named(self.user_function, args, kwargs)
        _, held_nodes = self._held_state.merge([state[key] for key in self._holders])
        graphs = nnx.NodeWatch([*nodes, *held_nodes])
        # The parameters that NNX objects were found in, in the order of the objects.
        owner_by_node: dict[int, str] = {}
        for name, value in by_name.items():
            for leaf in jax.tree_util.tree_leaves(value, is_leaf=nnx.is_node):
                owner_by_node.setdefault(id(leaf), name)
        owners = [owner_by_node.get(id(node), "") for node in nodes]
        owners += [holding.label for holding in self._holders.values()]
        returns = not self.user_function.pure
        watched = by_name if returns else static_leaves(by_name)
        with Watch(self.user_function.call, watched) as watch:
            arrays = {label: iter(jax.tree_util.tree_leaves(tree)) for label, tree in state.items()}
            for lift in self._lifted:
                values = [next(arrays[lift.change.label]) for _ in lift.old.places]
                watch.put(lift.change, lift.old.filled(values))
            for holder, node in zip(self._holders.values(), held_nodes, strict=True):
                watch.put(holder, node)
            returned = read(self.user_function.call(*args, **kwargs))
            updates = Updates(returns)
            for owner, change in zip(owners, graphs.changes(), strict=True):
                if change is not None:
                    updates.add_graph(owner, change)
            updates.add_all(watch)
        return returned, updates


def static_leaves(by_name: dict[str, object]) -> dict[str, list[object]]:
    """Return the leaves of arguments other than arrays, which a library passes on unchanged."""
    leaves = {name: jax.tree_util.tree_leaves(value) for name, value in by_name.items()}
    return {name: [*itertools.filterfalse(is_array, each)] for name, each in leaves.items()}


def _results(returned: object, outcome: Outcome) -> list[object]:
    leaves, outcome.structure = jax.tree_util.tree_flatten(returned)
    arrays = []
    for index, leaf in enumerate(leaves):
        if is_array(leaf) or isinstance(leaf, bool | int | float | complex):
            arrays.append(leaf)
        else:
            outcome.texts[index] = display.text(leaf)
    outcome.count = len(arrays)
    return arrays
