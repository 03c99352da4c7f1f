"""Tell the formats of HLO apart, and read each as the proto of a module.

XLA writes texts (`xla_dump_to`: `module_0001.f.before_optimizations.txt`; `Compiled.as_text()`) and
protos: an `HloModuleProto`, or an `HloProto` that has one beside a buffer assignment
(`xla/service/hlo.proto`).
"""

from __future__ import annotations

import re

from jaxsight_source.compat.lowered.hlo_modules import proto_of_text
from jaxsight_source.files import protobuf

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
    inner = _first_field(program)
    return program if inner is None else inner


def _first_field(message: bytes) -> bytes | None:
    """Return the message in field 1; None if the message is an `HloModuleProto` itself."""
    try:
        numbers = dict(protobuf.fields(message))
    except (ValueError, IndexError):
        raise ValueError("neither an HLO text nor a proto of one") from None
    inner = numbers.get(1)
    # The ids of a module and of its entry computation, which the messages around it do not have.
    is_module = isinstance(numbers.get(5), int) or isinstance(numbers.get(6), int)
    return inner if isinstance(inner, bytes) and not is_module else None
