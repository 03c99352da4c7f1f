"""Tell the formats of HLO apart, and read each as the proto of a module.

XLA writes texts (`xla_dump_to`: `module_0001.f.before_optimizations.txt`; `Compiled.as_text()`) and
protos: an `HloModuleProto`, or an `HloProto` that has one beside a buffer assignment
(`xla/service/hlo.proto`).
"""

from __future__ import annotations

import re

from jaxsight_source.compat.lowered.hlo_modules import proto_of_text

_TABLES = re.compile(
    r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d+ .*\n)*\n?", re.MULTILINE
)
"""Where Python code stands, before the computations; XLA reads it since 2025 only."""

_FRAMES = re.compile(r" stack_frame_id=\d+")

_ELIDED = re.compile(
    r"^(?P<head>[ \t]*(?:ROOT )?)(?P<name>%?[\w.-]+) = (?P<element>\w+)(?P<shape>\[[\d,]*\]\S*) "
    r"constant\(\{\.\.\.\}\)",
    re.MULTILINE,
)
"""A constant without its numbers: dumps leave out those of more than ten."""

_PARAMETER = re.compile(
    r"^ *(?:ROOT )?%(?P<name>[\w.-]+) = (?P<shape>\(?)\S.* parameter\((?P<number>\d+)\)"
    r"(?:.*?op_name=\"(?P<given>[^\"]*)\")?",
    re.MULTILINE,
)
_GENERIC = re.compile(r"(?:arg|param|parameter|p)_?\d*", re.IGNORECASE)
"""Names that XLA gives to parameters."""


def is_text(program: bytes) -> bool:
    """Return whether bytes are an HLO text."""
    return b"HloModule" in program[:4096] and b"\0" not in program[:4096]


def elided(text: str) -> int:
    """Return how many constants have no numbers in a text."""
    return len(_ELIDED.findall(text))


def with_ones(text: str) -> str:
    """Return a text with ones for the numbers of constants that it leaves out."""

    def ones(match: re.Match[str]) -> str:
        head, name, element, shape = match.group("head", "name", "element", "shape")
        one = f"{name}.one"
        value = "true" if element == "pred" else "1"
        indent = head.removesuffix("ROOT ")
        return (
            f"{indent}{one} = {element}[] constant({value})\n"
            f"{head}{name} = {element}{shape} broadcast({one}), dimensions={{}}"
        )

    return _ELIDED.sub(ones, text)


def parameter_names(text: str) -> list[str] | None:
    """Return the names of a module's parameters, empty where it has none that say something.

    The text is one that XLA prints, with metadata. A tuple is several parameters without names.
    """
    names: dict[int, str] = {}
    for match in _PARAMETER.finditer(text, text.rfind("\nENTRY ")):
        if match["shape"]:
            return None
        name = match["given"] or match["name"].partition(".")[0]
        cleaned = re.sub(r"[\W_]+", "_", name).strip("_")
        is_known = cleaned.isidentifier() and not _GENERIC.fullmatch(cleaned)
        names[int(match["number"])] = cleaned if is_known else ""
    return [names.get(number, "") for number in range(len(names))]


def module_proto(program: str | bytes) -> bytes:
    """Return the `HloModuleProto` of a text or a proto.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(program, str):
        before, start, after = program.partition("HloModule")
        if not start:
            raise ValueError("expected an HLO text, which begins with HloModule")
        # Lines keep their numbers, which errors name.
        text = "\n" * before.count("\n") + start + after
        text = _TABLES.sub(lambda table: "\n" * table[0].count("\n"), text)
        return proto_of_text(_FRAMES.sub("", text))
    return _module_in(program)


_NAME, _ENTRY = b"\n", b"\x12"
"""How a module begins: with its name, field 1, or without one with that of its entry, field 2."""


def _module_in(message: bytes) -> bytes:
    """Return the module in field 1 of an `HloProto`; an `HloModuleProto` is one itself."""
    if not message.startswith((_NAME, _ENTRY)) and message:
        raise ValueError("neither an HLO text nor a proto of one")
    length = shift = 0
    for at, byte in enumerate(message[1:], start=2):  # https://protobuf.dev/programming-guides
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            inner = message[at : at + length]
            return inner if inner.startswith((_NAME, _ENTRY)) else message
    return message
