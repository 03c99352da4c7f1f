"""Flax NNX: split modules, optimizers and variables into graphs and arrays, and merge them.

Public API of flax 0.11 and newer: `nnx.split`, `merge`, `State`, `Variable`, `Pytree` (`Object`
before 0.12), `set_graph_updates`; and of the objects that `nnx.jit` returns, `trace`, the stage's
`traced` and the class names below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.stages import Traced

from jaxsight.tracer.isolation.code_origins import equal
from jaxsight_source.compat.staging import open_jaxpr

JITTED = frozenset({"JitWrapped", "SimpleJitWrapped", "SimpleJitPartialWrapped"})
"""Classes of the objects that `nnx.jit` and `nnx.jit_partial` return."""


def library() -> Any:
    """Return `flax.nnx` if user code has imported it."""
    module = sys.modules.get("flax.nnx")
    return module if hasattr(module, "split") and hasattr(module, "merge") else None


def is_node(value: object) -> bool:
    """Return whether a value is a module, optimizer, variable or another NNX object."""
    module = library()
    if module is None:
        return False
    objects = getattr(module, "Pytree", None) or module.Object
    return issubclass(type(value), (objects, module.Variable))


def is_jitted(value: object) -> bool:
    """Return whether a value is the result of `nnx.jit`, and can be traced directly."""
    kind = type(value)
    package = str(kind.__module__).partition(".")[0]
    return package == "flax" and kind.__name__ in JITTED and hasattr(value, "trace")


@dataclass(frozen=True, slots=True)
class NodeSplit:
    """A pytree without its NNX objects, which are replaced by their arrays in `pure`.

    Objects stay shared.
    """

    pure: Any
    outer: jax.tree_util.PyTreeDef = None
    places: tuple[int, ...] = ()
    """Indices of the objects among the leaves of `outer`."""
    graph: object = None

    def merge(self, pure: object) -> tuple[Any, list[Any]]:
        """Return a pytree with NNX objects that have the arrays in `pure`, and these objects."""
        if not self.places:
            return pure, []
        parts = self.outer.flatten_up_to(pure)
        state = library().State({number: parts[at] for number, at in enumerate(self.places)})
        nodes = list(library().merge(self.graph, state))
        for at, node in zip(self.places, nodes, strict=True):
            parts[at] = node
        return self.outer.unflatten(parts), nodes


def split(value: object) -> NodeSplit:
    """Separate the NNX objects in a pytree from their arrays."""
    if library() is None:
        return NodeSplit(value)
    outer: object
    leaves, outer = jax.tree_util.tree_flatten(value, is_leaf=is_node)
    places = tuple(at for at, leaf in enumerate(leaves) if is_node(leaf))
    if not places:
        return NodeSplit(value)
    graph, states = _states([leaves[at] for at in places])
    for at, state in zip(places, states, strict=True):
        leaves[at] = state
    return NodeSplit(outer.unflatten(leaves), outer, places, graph)


@dataclass(frozen=True, slots=True)
class NodeTree:
    """A pytree without its leaves; parts shared by its NNX objects stay shared."""

    pure: Any
    split: NodeSplit

    def unflatten(self, leaves: Iterable[object]) -> Any:
        return self.split.merge(jax.tree_util.tree_unflatten(self.pure, leaves))[0]


def flatten(value: object) -> tuple[list[Any], NodeTree]:
    """Return the leaves of a pytree, those of its NNX objects included, and the rest."""
    parts = split(value)
    leaves, pure = jax.tree_util.tree_flatten(parts.pure)
    return leaves, NodeTree(pure, replace(parts, pure=None))


def _states(nodes: Sequence[object]) -> tuple[object, list[object]]:
    """Return the graph of several objects, and the arrays of each that no earlier one has."""
    module = library()
    graph, state = module.split(tuple(nodes))
    return graph, [state[at] if at in state else module.State({}) for at in range(len(nodes))]


@dataclass(frozen=True, slots=True)
class NodeChange:
    """Changes of an object by a call.

    `arrays` are its new state, `changed` those that differ from the old ones, by path.
    `structural`: attributes other than arrays changed.
    """

    arrays: tuple[object, ...]
    changed: tuple[tuple[str, object], ...]
    structural: bool


class NodeWatch:
    """The state of NNX objects before a call, to compare it with that after the call."""

    def __init__(self, nodes: Sequence[object]) -> None:
        self._nodes = list(nodes)
        self._graphs, self._before = self._read()

    def _read(self) -> tuple[list[object], list[list[tuple[str, object]]]]:
        """Return the graph of each object, and by path its arrays that no earlier object has."""
        if not self._nodes:
            return [], []
        common_graph, states = _states(self._nodes)
        alone = len(self._nodes) == 1
        graphs = [common_graph] if alone else [library().split(node)[0] for node in self._nodes]
        return graphs, [list(_leaves(state)) for state in states]

    def changes(self) -> list[NodeChange | None]:
        """Return the changes of each object, or `None`.

        If any changed, the arrays are those that `nnx.jit` returns: all, or with
        `nnx.set_graph_updates(False)` the changed ones.
        """
        graphs, after = self._read()
        structural = [not equal(*pair) for pair in zip(self._graphs, graphs, strict=True)]
        before = [dict(leaves) for leaves in self._before]
        pairs = zip(before, after, strict=True)
        changed = [
            tuple((at, leaf) for at, leaf in now if old.get(at) is not leaf) for old, now in pairs
        ]
        if not any(structural) and not any(changed):
            return [None] * len(self._nodes)
        setting = getattr(library(), "set_graph_updates", None)
        complete = setting is None or bool(setting.current_value())
        changes: list[NodeChange | None] = []
        for leaves, new, is_structural in zip(after, changed, structural, strict=True):
            arrays = tuple(leaf for _, leaf in (leaves if complete else new))
            has_changed = complete or new or is_structural
            changes.append(NodeChange(arrays, new, is_structural) if has_changed else None)
        return changes


@dataclass(frozen=True, slots=True)
class JittedProgram:
    """The program of `nnx.jit` or `jax.jit` for a call.

    Outputs `start` to `start + count` are the function's results.
    `updated` are the arguments whose state it changes, by position or keyword.
    """

    stage: Traced
    structure: jax.tree_util.PyTreeDef
    start: int
    count: int
    updated: tuple[int | str, ...]


def traced(jitted: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> JittedProgram:
    """Trace the result of `nnx.jit` for a call; the function's errors are raised."""
    stage = jitted.trace(*args, **kwargs).traced
    opened = open_jaxpr(stage.jaxpr)
    argument_tree: jax.tree_util.PyTreeDef = jax.tree_util.tree_structure(stage.args_info)
    results: jax.tree_util.PyTreeDef = jax.tree_util.tree_structure(stage.out_info)
    inputs = opened.invars[len(opened.invars) - argument_tree.num_leaves :]
    before = argument_tree.unflatten(inputs)
    after = results.unflatten(opened.outvars)
    if type(jitted).__name__ == "JitWrapped":
        args_after, kwargs_after, returned = after
        count = len(jax.tree_util.tree_leaves(returned))
        start = len(opened.outvars) - count
        updated = _updated_graphs(before, (args_after, kwargs_after))
    else:
        returned, updates = after
        start, count = 0, len(jax.tree_util.tree_leaves(returned))
        updated = _updated_variables(updates, inputs)
    structure = jax.tree_util.tree_structure(returned)
    return JittedProgram(stage, structure, start, count, tuple(dict.fromkeys(updated)))


def _updated_graphs(before: object, after: object) -> Iterator[int | str]:
    olds = filter(_is_state, jax.tree_util.tree_leaves(before, is_leaf=_is_state))
    pairs, _ = jax.tree_util.tree_flatten_with_path(after, is_leaf=_is_state)
    news = ((path, leaf) for path, leaf in pairs if _is_state(leaf))
    for old, (path, new) in zip(olds, news, strict=True):
        if [*map(id, jax.tree_util.tree_leaves(old))] != [*map(id, jax.tree_util.tree_leaves(new))]:
            yield _key(path[1])


def _updated_variables(updates: Iterable[Any], inputs: Sequence[object]) -> Iterator[int | str]:
    input_ids = {id(variable) for variable in inputs}
    for group in updates:
        for path, variable in group:
            leaves = jax.tree_util.tree_leaves(variable)
            if any(id(leaf) not in input_ids for leaf in leaves):
                yield path if isinstance(path, int) else _key(path[1])


def _is_state(value: object) -> bool:
    return type(value).__name__ == "NodeStates"


def _key(entry: Any) -> int | str:
    key: int | str = entry.key if isinstance(entry, jax.tree_util.DictKey) else entry.idx
    return key


def _leaves(state: object) -> Iterator[tuple[str, object]]:
    """Yield the arrays of a state with their paths, such as `first.kernel`."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        keys = [str(entry.key) for entry in path if isinstance(entry, jax.tree_util.DictKey)]
        yield ".".join(keys), leaf
