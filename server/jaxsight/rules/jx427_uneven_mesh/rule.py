"""JX427: the mesh axes of a sharding do not divide a dimension evenly."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.parsing import literal_in
from jaxsight.wire.meshes import Spec

RULE = Rule(__name__, "Mesh axes do not divide a dimension evenly.")
_SPEC = r"P(?:artitionSpec)?\((?P<spec>(?:[^()]|\([^()]*\))*)\)"
_SHARDING = re.compile(
    r"implies that array axis (?P<dimension>\d+) is partitioned (?P<parts>\d+) times, but "
    r"(?:the dimension size is|does not evenly divide the dimension size) (?P<size>\d+)"
)
_SHARD_MAP = re.compile(
    rf"the passed (?P<argument>\S+) of shape \w+\[(?P<shape>[\d,]*)\].*? of value {_SPEC}, "
    r"which maps array axis (?P<dimension>\d+) \(of size (?P<size>\d+)\) to mesh ax[ei]s "
    r"(?P<axes>.+?) \(of (?:total )?size (?P<parts>\d+)\)"
)
_SHAPE = re.compile(r"(?:full shape|Got shape): \((?P<shape>[\d, ]*)\)")
_OF_SPEC = re.compile(rf"spec={_SPEC}")
_PATH = re.compile(r"One of (?P<what>.{1,40}?) with pytree key path (?P<path>\S.*?) was given ")


@dataclass(frozen=True, slots=True)
class _Uneven:
    """A dimension that mesh axes do not divide."""

    dimension: int
    size: int
    parts: int
    shape: tuple[int, ...]
    spec: Spec
    """Empty if unknown."""
    array: str
    """What has the shape: `argument \\`params['w']\\``."""


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize errors of shardings, and of specs of `shard_map`, that do not divide an array."""
    uneven = _of_sharding(error.message) or _of_shard_map(error.message)
    if uneven is None:
        return None
    axes = uneven.spec[uneven.dimension] if uneven.dimension < len(uneven.spec) else ()
    names = ", ".join(axes)
    subject = {0: f"{uneven.parts} parts", 1: f"mesh axis {names}={uneven.parts}"}.get(
        len(axes), f"mesh axes {names} ({uneven.parts} together)"
    )
    verb = "does" if len(axes) == 1 else "do"
    shape = f"({', '.join(map(str, uneven.shape))}{',' * (len(uneven.shape) == 1)})"
    return Violation(
        f"{subject} {verb} not divide dimension {uneven.dimension} of size {uneven.size}",
        help=_help(uneven),
        notes=(f"{uneven.array} has shape {shape}",) if uneven.shape else (),
    )


def _of_sharding(message: str) -> _Uneven | None:
    """Return what the error of a `NamedSharding` is about."""
    match = _SHARDING.search(message)
    if match is None:
        return None
    path, shape, spec = (each.search(message) for each in (_PATH, _SHAPE, _OF_SPEC))
    what = "the array"
    if path is not None:
        kind = "result" if path["what"].endswith("outputs") else "argument"
        name = path["path"].removeprefix("result") if kind == "result" else path["path"]
        what = f"{kind} `{name}`" if name else f"the {kind}"
    return _Uneven(
        int(match["dimension"]),
        int(match["size"]),
        int(match["parts"]),
        _shape(shape["shape"]) if shape is not None else (),
        _spec(spec["spec"]) if spec is not None else (),
        what,
    )


def _of_shard_map(message: str) -> _Uneven | None:
    """Return what the error of an entry of `in_specs` is about."""
    match = _SHARD_MAP.search(message) if "evenly divisible" in message else None
    if match is None:
        return None
    return _Uneven(
        int(match["dimension"]),
        int(match["size"]),
        int(match["parts"]),
        _shape(match["shape"]),
        _spec(match["spec"]),
        f"`{match['argument']}` of `shard_map`",
    )


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size.strip())


def _spec(text: str) -> Spec:
    """Return the axes of each dimension; empty for specs with more than names."""
    try:
        entries = literal_in(f"({text.strip().rstrip(',')},)") if text.strip() else ()
    except ValueError:
        return ()
    assert isinstance(entries, tuple)
    return tuple(
        () if each is None else (each,) if isinstance(each, str) else tuple(map(str, each))
        for each in entries
    )


def _help(uneven: _Uneven) -> str:
    """Return how to pad the dimension, and which other dimension the axes divide."""
    padded = math.ceil(uneven.size / uneven.parts) * uneven.parts
    pad = f"pad dimension {uneven.dimension} to {padded}"
    for other, size in enumerate(uneven.shape):
        is_free = other >= len(uneven.spec) or not uneven.spec[other]
        if uneven.spec and is_free and other != uneven.dimension and size % uneven.parts == 0:
            return f"{pad}, or divide dimension {other} of size {size} instead"
    return f"{pad}, or divide it over other axes"
