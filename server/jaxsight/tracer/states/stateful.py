"""Represent a call as a function of arrays: its results, then the state that it updates.

A function's changes of its arguments, of globals that its code refers to and of its closure are
part of its result, as if the function took the state and returned it.
Afterwards all objects are restored: no tracer stays behind.
State that the call replaces is also an input, so that it is not a constant.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight.tracer.compat import jaxprs, leaks, refs
from jaxsight.tracer.function_lookup import Found, parameter
from jaxsight.tracer.inputs import Inputs, abstract, is_array, is_number, named
from jaxsight.tracer.observation import display
from jaxsight.tracer.states import nnx, objects
from jaxsight.tracer.states.objects import GONE
from jaxsight.tracer.states.watch import Change, Watch

_SELF = ("self", "cls")

_LARGEST = 4_096
"""Maximum number of objects that are searched for arrays in a value."""


@dataclass(slots=True)
class Outcome:
    """Results of the last call besides arrays.

    `structure` is that of its return value, `kept` has the texts of leaves that are not arrays, by
    index; `count` is the number of returned arrays, which start at output `start`.
    `updates` are the names of values that it updated in place, `left_out` of those that are not
    outputs.
    """

    structure: Any = None
    kept: dict[int, Any] = field(default_factory=dict)
    start: int = 0
    markers: int = 0
    """Number of leading results that only the library's `jit` has; `start` does not count them."""
    count: int = 0
    updates: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def in_order(self, outputs: Sequence[Any]) -> list[Any]:
        """Return the program's outputs in the order of `Stateful`: returned ones, then updates."""
        end = self.start + self.count
        return [*outputs[self.start : end], *outputs[: self.start], *outputs[end:]]


@dataclass(frozen=True, slots=True)
class Lift:
    """A value that a call replaces: its arrays become inputs at `places` among its leaves."""

    change: Change
    structure: Any
    leaves: tuple[Any, ...]
    places: tuple[int, ...]

    @property
    def arrays(self) -> list[Any]:
        return [self.leaves[at] for at in self.places]

    def filled(self, arrays: Sequence[Any]) -> Any:
        leaves = list(self.leaves)
        for at, array in zip(self.places, arrays, strict=True):
            leaves[at] = array
        return jax.tree_util.tree_unflatten(self.structure, leaves)


class Stateful:
    """`found.call` with the static parts of the inputs filled in, called with `args` and `kwargs`.

    `outcome` and `lifts` are those of the last call.
    """

    def __init__(
        self,
        found: Found,
        inputs: Inputs,
        lifts: Sequence[Lift] = (),
        holders: Sequence[Change] = (),
    ) -> None:
        self.outcome = Outcome()
        self.lifts: list[Lift] = []
        self.found = found
        self._inputs = inputs
        self._lifted = tuple(lifts)
        self._holders = {_numbered(at, holders): each for at, each in enumerate(holders)}
        self._held = nnx.split([each.old for each in holders])
        self._split = nnx.split((inputs.args, inputs.kwargs))
        self._leaves, self._structure = jax.tree_util.tree_flatten(self._split.pure)
        self._static = {
            index: leaf for index, leaf in enumerate(self._leaves) if not is_array(leaf)
        }
        self._state = _keyword(inputs)
        # Static leaves are replaced by `None`, so that JAX names the arrays as in the user's call.
        left = [None if at in self._static else leaf for at, leaf in enumerate(self._leaves)]
        pure = jax.tree_util.tree_unflatten(self._structure, left)
        self.args, self.kwargs = pure if self._static else self._split.pure
        held = dict(
            zip(self._holders, jax.tree_util.tree_map(abstract, self._held.pure), strict=True)
        )
        state = {**_by_label(self._lifted), **held}
        self.extra = {self._state: state} if state else {}
        """State that it also takes, by keyword."""
        self.kwargs = {**self.kwargs, **self.extra}

    def again(self) -> Stateful:
        """Return the same call with the state that the last one replaced as inputs."""
        return Stateful(self.found, self._inputs, self.lifts, tuple(self._holders.values()))

    @property
    def function(self) -> Callable[..., list[Any]]:
        """The call as a function, with the name and the signature of the user's."""

        @functools.wraps(self.found.call, updated=())
        def call(*args: Any, **kwargs: Any) -> list[Any]:
            return self(*args, **kwargs)

        return self._signed(call)

    @property
    def pure(self) -> Callable[..., Any]:
        """The user's function, returning its result and the state that it updates.

        It takes all arguments, and the keyword for state if the call replaces state.
        """

        @functools.wraps(self.found.call, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            state = kwargs.pop(self._state) if self.extra else {}
            nodes = [
                leaf
                for leaf in jax.tree_util.tree_leaves((args, kwargs), is_leaf=nnx.is_node)
                if nnx.is_node(leaf)
            ]
            result, updates = self._run(args, kwargs, nodes, state, lambda result: result)
            return result, _one_or_all(updates.parts)

        return self._signed(call)

    def _signed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        if self.extra:
            with contextlib.suppress(TypeError, ValueError):  # not every callable has a signature
                signature = inspect.signature(self.found.call)
                call.__signature__ = _with_state(signature, self._state)  # type: ignore[attr-defined]
        return call

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return all arrays of the call: those that it returns, then those that it updates."""
        state = kwargs.pop(self._state) if self.extra else {}
        pure: Any = (args, kwargs)
        if self._static:
            arrays = iter(jax.tree_util.tree_leaves(pure))
            whole = [
                self._static[at] if at in self._static else next(arrays)
                for at in range(len(self._leaves))
            ]
            pure = jax.tree_util.tree_unflatten(self._structure, whole)
        (args, kwargs), nodes = self._split.merge(pure)
        outcome = Outcome()
        results, updates = self._run(
            args, kwargs, nodes, state, lambda result: _results(result, outcome)
        )
        updates.note(outcome)
        self.outcome, self.lifts = outcome, updates.lifts
        return [*results, *updates.arrays]

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        nodes: list[Any],
        state: Any,
        read: Callable[[Any], Any],
    ) -> tuple[Any, _Updates]:
        """Call the function; return `read` of its result, before any restore, and its updates."""
        by_name = named(self.found, args, kwargs)
        _, held = self._held.merge([state[key] for key in self._holders])
        graphs = nnx.Watch([*nodes, *held])
        owners = [*_owners(by_name, nodes), *(each.label for each in self._holders.values())]
        returns = not self.found.pure
        with Watch(self.found.call, by_name if returns else _opaque(by_name)) as watch:
            for lift, values in zip(self._lifted, _in_order(self._lifted, state), strict=True):
                watch.put(lift.change, lift.filled(values))
            for holder, node in zip(self._holders.values(), held, strict=True):
                watch.put(holder, node)
            result = read(self.found.call(*args, **kwargs))
            updates = _Updates(returns)
            for owner, change in zip(owners, graphs.changes(), strict=True):
                if change is not None:
                    updates.add_graph(owner, change)
            updates.add_all(watch)
        return result, updates


class _Updates:
    """Updates of a call, by the user's names.

    Args:
        returns: whether the call's state is part of the program; else a library drops it.
    """

    def __init__(self, returns: bool = True) -> None:
        self.returns = returns
        self.names: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self.arrays: list[Any] = []
        self.parts: dict[str, list[Any]] = {}
        """Changes as pytrees, by name."""
        self.lifts: list[Lift] = []

    def note(self, outcome: Outcome) -> None:
        outcome.updates = tuple(self.names)
        outcome.left_out = tuple(self.left_out)

    def add_all(self, watch: Watch) -> None:
        for change in watch.changes():
            self.add(change)
        # Other values in a container that the call changes are state too, not constants.
        others = (
            _lift(change, set()) for change in watch.beside([lift.change for lift in self.lifts])
        )
        self.lifts += [lift for lift in others if lift is not None]

    def add_graph(self, owner: str, change: nnx.Change) -> None:
        self.names |= dict.fromkeys(_graph_name(owner, path) for path, _ in change.changed)
        if change.structural and not change.changed:
            self.names[owner] = self.left_out[owner] = None
        self.arrays += change.arrays
        if change.changed:
            self.parts.setdefault(owner, []).append(dict(change.changed))

    def add(self, change: Change) -> None:
        new = _arrays(change.new)
        old = {id(leaf) for leaf in _arrays(change.old)}
        # JAX raises no error for a leaked tracer until something uses it.
        fresh = [leaf for leaf in new if id(leaf) not in old and not leaks.is_leaked(leaf)]
        fresh_ones = set(map(id, fresh))
        if not fresh and not change.counts:
            return
        self.names[change.label] = None
        if not fresh or not self.returns:
            self.left_out[change.label] = None
            return
        self.arrays += fresh
        whole = all(leaf in fresh_ones for leaf in map(id, jax.tree_util.tree_leaves(change.new)))
        self.parts.setdefault(change.label, []).append(change.new if whole else fresh)
        if (lift := _lift(change, {id(leaf) for leaf in new})) is not None:
            self.lifts.append(lift)


def _lift(change: Change, kept: set[int]) -> Lift | None:
    if change.old is GONE:
        return None
    structure: Any
    leaves, structure = jax.tree_util.tree_flatten(change.old)
    after, structure_after = jax.tree_util.tree_flatten(change.new)
    places = []
    for at, leaf in enumerate(leaves):
        if is_number(leaf):
            # If it becomes an array in the first call, it is one in all later calls.
            if structure == structure_after and is_array(after[at]):
                places.append(at)
        elif is_array(leaf) and not isinstance(leaf, jax.core.Tracer) and id(leaf) not in kept:
            places.append(at)
    return Lift(change, structure, tuple(leaves), tuple(places)) if places else None


def _by_label(lifts: Sequence[Lift]) -> dict[str, Any]:
    """Return the inputs of lifts by label, as pytrees of abstract arrays if they are complete."""
    found: dict[str, list[Any]] = {}
    for lift in lifts:
        arrays = list(map(abstract, lift.arrays))
        whole = len(arrays) == len(lift.leaves)
        found.setdefault(lift.change.label, []).append(lift.filled(arrays) if whole else arrays)
    return _one_or_all(found)


def _one_or_all(parts: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: each[0] if len(each) == 1 else each for name, each in parts.items()}


def _in_order(lifts: Sequence[Lift], state: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the arrays of each lift from those by label."""
    left = {label: iter(jax.tree_util.tree_leaves(tree)) for label, tree in state.items()}
    for lift in lifts:
        yield [next(left[lift.change.label]) for _ in lift.places]


def _opaque(by_name: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the leaves of arguments other than arrays, which a library passes on unchanged."""
    return {
        name: [leaf for leaf in jax.tree_util.tree_leaves(value) if not is_array(leaf)]
        for name, value in by_name.items()
    }


def _results(result: Any, outcome: Outcome) -> list[Any]:
    leaves, outcome.structure = jax.tree_util.tree_flatten(result)
    arrays = []
    for index, leaf in enumerate(leaves):
        if is_array(leaf) or isinstance(leaf, bool | int | float | complex):
            arrays.append(leaf)
        else:
            outcome.kept[index] = display.text(leaf)
    outcome.count = len(arrays)
    return arrays


def _arrays(value: Any) -> list[Any]:
    """Return the arrays in a value: in pytrees, and in attributes of other objects."""
    if value is GONE:
        return []
    found: list[Any] = []
    waiting, seen = [value], dict[int, Any]()
    while waiting and len(seen) < _LARGEST:
        each = waiting.pop()
        for leaf in jax.tree_util.tree_leaves(each):
            if is_array(leaf):
                found.append(leaf)
            elif id(leaf) not in seen:
                seen[id(leaf)] = leaf
                waiting += [
                    value
                    for kind, target in objects.kinds(leaf)
                    if not issubclass(type(leaf), type)
                    for value in kind.read(target)[1]
                ]
    return found


def _owners(by_name: dict[str, Any], nodes: Sequence[Any]) -> list[str]:
    """Return the parameters that NNX objects were found in, in the order of the objects."""
    known: dict[int, str] = {}
    for name, value in by_name.items():
        for leaf in jax.tree_util.tree_leaves(value, is_leaf=nnx.is_node):
            known.setdefault(id(leaf), name)
    return [known.get(id(node), "") for node in nodes]


def _graph_name(owner: str, path: str) -> str:
    """Return the name of updated state: `model`, or an attribute of `self` such as `self.count`."""
    first = path.partition(".")[0]
    return f"{owner}.{first}" if owner in _SELF and first.isidentifier() else owner


def _numbered(at: int, holders: Sequence[Change]) -> str:
    """Return a unique name for each place: `self.model`, then `self.model 2`."""
    label = holders[at].label
    number = sum(each.label == label for each in holders[: at + 1])
    return label if number == 1 else f"{label} {number}"


def _keyword(inputs: Inputs) -> str:
    """Return the keyword for state: `state`, unless a parameter has that name."""
    keyword = "state"
    while keyword in inputs.named or keyword in inputs.kwargs:
        keyword += "_"
    return keyword


def _with_state(signature: inspect.Signature, keyword: str) -> inspect.Signature:
    parameters = list(signature.parameters.values())
    state = inspect.Parameter(keyword, inspect.Parameter.KEYWORD_ONLY)
    rest = [each for each in parameters if each.kind is inspect.Parameter.VAR_KEYWORD]
    return signature.replace(
        parameters=[*(each for each in parameters if each not in rest), state, *rest]
    )


def traced(found: Found, inputs: Inputs) -> tuple[Any, Outcome]:
    """Trace the call; return JAX's `Traced` stage, which can be lowered, and the other results."""
    if nnx.is_jitted(found.wrapper):
        return _traced_by_nnx(found, inputs)
    if found.jitted:
        return _traced_by_jit(found, inputs)
    call, stage = _begun(found, inputs, _staged)
    if call.lifts:
        # Constants of the first trace may be state that the call replaces.
        again = call.again()
        with contextlib.suppress(Exception):  # e.g. if `float(self.count)` needs a constant
            return _with_refs(_staged(again), again.outcome, found, inputs)
    return _with_refs(stage, call.outcome, found, inputs)


def updating(found: Found, inputs: Inputs) -> Stateful | None:
    """Return the call if it updates arrays in place; those that it replaces are inputs.

    The function's errors are raised.
    """
    if found.jitted:
        return None
    call, _ = _begun(found, inputs, _try)
    if set(call.outcome.updates) == set(call.outcome.left_out):
        return None
    if call.lifts:
        again = call.again()
        with contextlib.suppress(Exception):  # e.g. if `float(self.count)` needs a constant
            _try(again)
            return again
    return call


def with_values(found: Found, inputs: Inputs) -> Stateful:
    """Return the call to make with concrete arrays, without the `jit` of a jitted function."""
    if found.jitted:
        body = getattr(found.call, "__wrapped__", found.call)
        found = replace(found, call=body, jitted=False, pure=True)
    return Stateful(found, inputs)


def _try(call: Stateful) -> None:
    jax.make_jaxpr(call.function)(*call.args, **call.kwargs)


def _begun(found: Found, inputs: Inputs, run: Callable[[Stateful], Any]) -> tuple[Stateful, Any]:
    """Run the call for the first time, and return it with the result.

    NNX objects that it changes and that are not arguments become inputs.
    """
    call = Stateful(found, inputs)
    try:
        return call, run(call)
    except Exception as error:
        holders = []
        if type(error).__name__ == "TraceContextError":
            watch = Watch(found.call, _opaque(named(found, inputs.args, inputs.kwargs)))
            holders = watch.holders
        if not holders:
            raise
    call = Stateful(found, inputs, holders=holders)
    return call, run(call)


def _staged(call: Stateful) -> Any:
    found = call.found
    function = call.function
    if found.pure:
        function = _marked(function)
    first, rest = found.donates
    donated = [at for at in range(len(call.args)) if (first if at == 0 else rest)]
    named_too = list(call.kwargs) if rest else []
    jitted: Any = jax.jit(function, donate_argnums=donated, donate_argnames=named_too)
    stage = jitted.trace(*call.args, **call.kwargs)
    call.outcome.markers = int(found.pure)
    return stage


def _marked(function: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Add the scalar before all results that `eqx.filter_jit` adds.

    See `equinox/_jit.py`, 0.11 to 0.13.
    """

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> list[Any]:
        results = function(*args, **kwargs)
        return [jnp.array(0), *results]

    return call


def _traced_by_jit(found: Found, inputs: Inputs) -> tuple[Any, Outcome]:
    """Return the program of `jax.jit`, which returns no state."""
    call: Any = found.call
    outcome = Outcome()
    updates = _Updates(returns=False)
    with Watch(call, _opaque(named(found, inputs.args, inputs.kwargs))) as watch:
        stage = call.trace(*inputs.args, **inputs.kwargs)
        updates.add_all(watch)
    updates.note(outcome)
    outcome.structure = jax.tree_util.tree_structure(stage.out_info)
    outcome.count = outcome.structure.num_leaves
    return _with_refs(stage, outcome, found, inputs)


def _traced_by_nnx(found: Found, inputs: Inputs) -> tuple[Any, Outcome]:
    """Return the program of `nnx.jit`, which also returns the state of objects in its arguments."""
    outcome = Outcome()
    updates = _Updates(returns=False)
    with Watch(found.call, _opaque(named(found, inputs.args, inputs.kwargs))) as watch:
        program = nnx.traced(found.wrapper, inputs.args, inputs.kwargs)
        updates.add_all(watch)
    names = (parameter(found, key) if isinstance(key, int) else key for key in program.updated)
    updates.names = dict.fromkeys((*names, *updates.names))
    updates.note(outcome)
    outcome.structure = program.structure
    outcome.start, outcome.count = program.start, program.count
    return _with_refs(program.stage, outcome, found, inputs)


def _with_refs(stage: Any, outcome: Outcome, found: Found, inputs: Inputs) -> tuple[Any, Outcome]:
    """Add the names of references that the program writes to its updates."""
    places = list(refs.written(stage.jaxpr))
    if not places:
        return stage, outcome
    opened = jaxprs.open_jaxpr(stage.jaxpr)
    constants = jaxprs.constants(stage.jaxpr)
    watch = Watch(found.call, inputs.named)
    given = getattr(opened.debug_info, "arg_names", None) or ()
    labels = []
    for place in places:
        if place < len(opened.constvars):
            labels.append(watch.label(constants[place]) or "a captured reference")
        else:
            path = given[place - len(opened.constvars)] if given else None
            labels.append(_PARAMETER.split(str(path or "an argument"), maxsplit=1)[0])
    outcome.updates = tuple(dict.fromkeys((*outcome.updates, *labels)))
    return stage, outcome


_PARAMETER = re.compile(r"[.\[]")
