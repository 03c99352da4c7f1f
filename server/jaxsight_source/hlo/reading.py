"""Read a program of HLO as a jaxpr."""

from __future__ import annotations

from dataclasses import replace

from jaxsight_source.compat.lowered.hlo_modules import (
    InvalidModule,
    proto_of_text,
    stablehlo_module,
    stablehlo_of_proto,
    text_of_proto,
)
from jaxsight_source.hlo import convolutions, formats
from jaxsight_source.hlo.flattening import Unflattened, flatten
from jaxsight_source.stablehlo.program import StablehloProgram, UnreadableProgram, with_plain_names
from jaxsight_source.stablehlo.reading import read as read_stablehlo


def read(program: str | bytes) -> StablehloProgram:
    """Return the program of an HLO text, or of a proto of a module, before or after optimizations.

    Fusions are inlined, and library calls that stand for an operation become that operation.

    Args:
        program: an HLO text; or bytes of one, of an `HloModuleProto` or `HloProto`.

    Raises:
        UnreadableProgram: it is none of these, or has no JAX.
    """
    found = read_stablehlo(stablehlo_of(program))
    names = parameter_names(program)
    return replace(found, names=names) if len(names) == len(found.names) else found


def parameter_names(program: str | bytes) -> tuple[str, ...]:
    """Return names for the parameters of a program, as `read` takes it; none for a tuple's."""
    text = text_of_proto(_module_proto(program), metadata=True)
    return with_plain_names(formats.parameter_names(text) or [])


def stablehlo_of(program: str | bytes) -> str:
    """Return the StableHLO text of a program, as `read` takes it."""
    return _stablehlo(_module_proto(program))


def _module_proto(program: str | bytes) -> bytes:
    if isinstance(program, bytes) and formats.is_text(program):
        program = program.decode("utf-8", "replace")
    if isinstance(program, str) and (missing := formats.elided(program)):
        raise UnreadableProgram(
            f"the text leaves out the numbers of {missing} constant{'s' * (missing > 1)}; "
            "help: dump protos, with --xla_dump_hlo_as_proto"
        )
    try:
        return formats.module_proto(program)
    except (InvalidModule, ValueError) as error:
        raise UnreadableProgram(str(error)) from error


def _stablehlo(proto: bytes) -> str:
    try:
        text = text_of_proto(proto)
        plain = convolutions.separated(text)
        module = stablehlo_of_proto(proto if plain == text else proto_of_text(plain))
        flatten(module)
    except (InvalidModule, Unflattened) as error:
        raise UnreadableProgram(str(error)) from error
    return str(module)


def flattened(program: str | bytes) -> str:
    """Return a StableHLO module, text or bytecode, without what `flatten` replaces.

    Raises:
        UnreadableProgram: it cannot be parsed, or flattened.
    """
    try:
        module = stablehlo_module(program)
        flatten(module)
    except (InvalidModule, Unflattened) as error:
        raise UnreadableProgram(str(error)) from error
    return str(module)
