"""The calls of the project's functions in a trace, as example inputs of those functions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import jax

from jaxsight.lru import Recent
from jaxsight.recording.arguments import write_call
from jaxsight.recording.notation import UnwritableError
from jaxsight.tracer.observation.imported_functions import ImportedFunctions
from jaxsight.tracer.observation.observation_table import InstrumentedChunk
from jaxsight.tracer.observation.observed_values import Sites
from jaxsight.wire.observations import OBSERVED_VALUES, Called

_SHAPE = re.compile(r"\w\[([^\]]*)\]")
"""The sizes of an array in the notation of example inputs."""
_NUMBER = re.compile(r"\b\d+\b")

_TEXTS = 1024
"""Calls whose texts are kept; others are written anew for each trace."""
_FUNCTIONS = 100
"""Functions whose calls are reported, by name: a trace seldom calls more of the project."""


class CallTexts:
    """Writes calls as example inputs; what has been written is kept, as it takes long."""

    def __init__(self) -> None:
        self._texts: Recent[object, str] = Recent(_TEXTS)

    def text(
        self,
        key: object,
        parameters: Sequence[str],
        arguments: Sequence[object],
        namespace: Mapping[str, object],
    ) -> str:
        """Return arguments as the lines of an example set; empty if one of them has no form.

        Args:
            key: the types of the arguments.
            parameters: the names of the parameters, with stars.
            arguments: their values.
            namespace: the names of the function's module.
        """
        full_key = key, tuple(parameters), jax.sharding.get_abstract_mesh()
        known = self._texts.get(full_key)
        if known is not None:
            return known
        try:
            call = write_call(zip(parameters, arguments, strict=True), namespace)
        except UnwritableError:
            return ""
        if call.unwritten:
            return ""
        # An expression may refer to other objects when its function is executed again.
        if " = " not in call.text:
            self._texts.put(full_key, call.text)
        return call.text


def _by_size(text: str) -> tuple[int, str]:
    """Return a key that sorts example inputs: those with most elements in arrays first."""
    shapes = _SHAPE.findall(text)
    sizes = (math.prod(map(int, _NUMBER.findall(shape))) for shape in shapes)
    return -sum(sizes), text


def calls_in(
    contexts: Iterable[Sites],
    instances: Iterable[InstrumentedChunk],
    imported: ImportedFunctions,
) -> tuple[Called, ...]:
    """Return the functions called in `contexts`, of these chunks and of imported modules."""
    own = {
        instance.first + index: site.entry.function
        for instance in instances
        for index, site in enumerate(instance.sites)
        if site.entry is not None
    }
    inputs: dict[tuple[str, str], dict[str, None]] = {}
    for sites in contexts:
        for number, values in sites.items():
            function = imported.function(number) if number < 0 else None
            if function is not None:
                key = (function.file, function.name)
            elif number in own:
                key = ("", own[number])
            else:
                continue
            texts = (seen.text for seen in values.described.values() if seen.text)
            inputs.setdefault(key, {}).update(dict.fromkeys(texts))
    # Which call came first depends on what JAX has cached, so the largest one is the first.
    return tuple(
        Called(file, name, tuple(sorted(texts, key=_by_size))[:OBSERVED_VALUES])
        for (file, name), texts in sorted(inputs.items())
        if texts
    )[:_FUNCTIONS]
