"""The columns of the tables, and the version of the schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

VERSION = 2
"""Another version has other columns, or columns with another meaning."""

PASSED = "passed"
NOT_COMPARED = "not compared"
"""How a check begins that could not compare anything; the reason follows."""

LONGEST = 300
"""Characters of a message in a row, a choice: XLA's may quote the whole program."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A record with these fields."""

    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class List:
    """Any number of values of a type."""

    of: Type


Type: TypeAlias = str | Struct | List
"""`string`, `bool`, `int64`, `float64`, or a nested type."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a field of a record.

    Attributes:
        name: its name.
        type: that of its values.
        description: what it contains; for the documentation and the card.
        is_nullable: whether a row may have no value.
    """

    name: str
    type: Type
    description: str
    is_nullable: bool = False


_STRINGS = List("string")

_KERNEL = Struct(
    (
        Column("name", "string", "The name of its HLO instruction."),
        Column("kind", "string", "Its kind, such as `fusion`."),
        Column("what", "string", "What it computes."),
        Column("ends_because", "string", "Why XLA fused no more into it."),
        Column("equations", _STRINGS, "Paths of the equations in it, as in `alignment`."),
        Column("launches", "int64", "How often it is launched."),
        Column("bytes_in", "int64", "Bytes that it reads."),
        Column("bytes_out", "int64", "Bytes that it writes."),
        Column("flops", "float64", "Floating-point operations.", True),
        Column("estimate_seconds", "float64", "Roofline estimate.", True),
    )
)

_TARGET = Struct(
    (
        Column("target", "string", "The device, as `jaxsight targets` lists it."),
        Column("refused", "string", "Why it is not compiled; then all that follows is null.", True),
        Column("compiled", "string", "`device`, or `ahead of time` without the device.", True),
        Column("devices", "int64", "Devices that it runs on; figures are those of one.", True),
        Column("hlo", "string", "The optimized HLO; empty for `cpu`, whose HLO is a column.", True),
        Column("kernel_count", "int64", "Kernels.", True),
        Column("launch_count", "int64", "Kernel launches of one call.", True),
        Column("launches_known", "bool", "Whether `launch_count` is exact, or the least.", True),
        Column("temp_bytes", "int64", "Bytes of temporaries.", True),
        Column("argument_bytes", "int64", "Bytes of arguments.", True),
        Column("output_bytes", "int64", "Bytes of results.", True),
        Column("flops", "float64", "Floating-point operations, by XLA.", True),
        Column("estimate_seconds", "float64", "Roofline estimate.", True),
        Column("estimate_is_lower_bound", "bool", "Whether it leaves something out.", True),
        Column("kernels", List(_KERNEL), "Each kernel.", True),
    )
)

_ALIGNMENT = Struct(
    (
        Column("equation", "string", "The path of an equation: `3`, or `3/body/0` inside another."),
        Column("primitive", "string", "Its primitive."),
        Column("line", "int64", "First line of its expression, from 1.", True),
        Column("column", "int64", "First column, in code points from 0.", True),
        Column("end_line", "int64", "Last line.", True),
        Column("end_column", "int64", "The column after the last one.", True),
        Column("expression", "string", "The Python expression; empty where there is none."),
        Column("instructions", _STRINGS, "Names of instructions in `hlo` that compute it."),
    )
)

CHECKS = (
    ("jitted", "Compiled and run."),
    ("inputs", "The results depend on every argument, and none is constant."),
    ("finite", "All results are finite; `labelled` where `tags` say that they are not."),
    ("gradient", "The gradient agrees with finite differences."),
    ("printed", "The text traces to the same program in another process."),
    ("eager", "An eager run in another process agrees."),
    (
        "stablehlo",
        "The StableHLO parses and prints the same; compiled otherwise, it agrees.",
    ),
    ("one_device", "A run of a program over several devices on one of them agrees."),
)

_VALIDATION = Struct(tuple(Column(name, "string", what, True) for name, what in CHECKS))

_PROVENANCE = Struct(
    (
        Column("package", "string", "The package that the function is from."),
        Column("version", "string", "Its version."),
        Column("path", "string", "The file in the package; empty for generated programs."),
        Column("licence", "string", "The licence of the source, as an SPDX expression."),
        Column("source", "string", "The text of a mined function in its package; else empty."),
    )
)

_VERSIONS = Struct(
    tuple(
        Column(name, "string", f"The version of {title}.")
        for name, title in (
            ("jax", "JAX"),
            ("jaxlib", "jaxlib, and of XLA with it"),
            ("numpy", "NumPy"),
            ("python", "Python"),
            ("jaxsight", "jaxsight"),
        )
    )
)

_BACKWARD = " of the backward direction; null where there is no derivative."

ROWS = (
    Column("schema_version", "int64", "The version of this schema."),
    Column("number", "int64", "The position among all programs; identifies the row."),
    Column("split", "string", "`train`, `validation` or `test`."),
    Column("source_code", "string", "A Python module that defines the function."),
    Column("function", "string", "The name of the function."),
    Column("category", "string", "What the program is about."),
    Column("template", "string", "The family of the generator; no family is in two splits."),
    Column("difficulty", "string", "`basic`, `medium`, `hard` or `very hard`, by equations."),
    Column(
        "tags", _STRINGS, "What a reader should know, such as `non-finite` and `assumed-inputs`."
    ),
    Column("arguments", "string", "The arguments of the call, as JSON: dtype, shape, values."),
    Column("input_shapes", List(List("int64")), "Shapes of the arrays in the arguments."),
    Column("input_dtypes", _STRINGS, "Their dtypes."),
    Column("directions", _STRINGS, "`forward`, and `backward` where there is a derivative."),
    Column("transformations", _STRINGS, "Transformations of JAX that the program uses."),
    Column("primitives", _STRINGS, "Primitives of the jaxpr, inner ones included."),
    Column("equation_count", "int64", "Equations of the jaxpr, inner ones included."),
    Column("jaxpr", "string", "The jaxpr."),
    Column("stablehlo", "string", "The StableHLO."),
    Column("unoptimized_hlo", "string", "The HLO with which XLA begins, before its passes."),
    Column("hlo", "string", "The optimized HLO for this machine's CPU."),
    Column("normal_form", "string", "The program as `jaxsight sourcerize` writes it.", True),
    Column("targets", List(_TARGET), "Kernels, memory and estimates for each target."),
    Column("alignment", List(_ALIGNMENT), "Expression, equation and HLO instructions."),
    Column("backward_jaxpr", "string", "The jaxpr" + _BACKWARD, True),
    Column("backward_stablehlo", "string", "The StableHLO" + _BACKWARD, True),
    Column("backward_unoptimized_hlo", "string", "The unoptimized HLO" + _BACKWARD, True),
    Column("backward_hlo", "string", "The optimized HLO" + _BACKWARD, True),
    Column("backward_equation_count", "int64", "Equations" + _BACKWARD, True),
    Column("backward_targets", List(_TARGET), "`targets`" + _BACKWARD, True),
    Column("canonical_digest", "string", "Equal for programs that differ in names at most."),
    Column("structure_digest", "string", "Equal for programs that differ in sizes at most."),
    Column("minhash", List("int64"), "32 hashes; as many agree as programs resemble each other."),
    Column("validation", _VALIDATION, "`passed`, or what was found, for each check."),
    Column("test_success", "bool", "Whether all checks passed."),
    Column("provenance", _PROVENANCE, "Where the source is from."),
    Column("versions", _VERSIONS, "What the row was made with."),
    Column("x64", "bool", "Whether JAX had 64-bit types (`jax_enable_x64`)."),
)

TABLES = {"rows": ROWS, "disagreements": ROWS}
"""The columns of each table. Disagreements have those of rows: `validation` says what differs."""


def is_fine(check: str | None) -> bool:
    """Return whether a check found nothing wrong."""
    return check in (PASSED, "labelled", "not applicable") or (
        check is not None and check.startswith(NOT_COMPARED)
    )


def type_name(kind: Type) -> str:
    """Return a type in one word, such as `list<int64>`."""
    match kind:
        case List(of=of):
            return f"list<{type_name(of)}>"
        case Struct():
            return "struct"
    return kind


def markdown(columns: tuple[Column, ...]) -> str:
    """Return columns as a table in Markdown; fields of records follow as `record.field`."""
    lines = ["| column | type | content |", "|---|---|---|"]
    for name, column in _flat(columns, ""):
        optional = " or null" if column.is_nullable else ""
        lines.append(f"| `{name}` | {type_name(column.type)}{optional} | {column.description} |")
    return "\n".join(lines) + "\n"


def _flat(columns: tuple[Column, ...], prefix: str) -> list[tuple[str, Column]]:
    flat: list[tuple[str, Column]] = []
    for column in columns:
        name = f"{prefix}{column.name}"
        flat.append((name, column))
        kind, mark = column.type, ""
        while isinstance(kind, List):
            kind, mark = kind.of, f"{mark}[]"
        if isinstance(kind, Struct):
            flat += _flat(kind.fields, f"{name}{mark}.")
    return flat


def problem(value: object, columns: tuple[Column, ...]) -> str:
    """Return how a row differs from the schema; empty if it does not."""
    return _problem(value, Struct(columns), "")


def _problem(value: object, kind: Type, path: str) -> str:
    match kind:
        case List(of=of):
            if not isinstance(value, list):
                return f"{path} is no list"
            problems = (_problem(item, of, f"{path}[{at}]") for at, item in enumerate(value))
            return next(filter(None, problems), "")
        case Struct(fields=fields):
            if not isinstance(value, dict):
                return f"{path or 'the row'} is no record"
            prefix = f"{path}." if path else ""
            names = {field.name for field in fields}
            if unknown := [str(name) for name in value if name not in names]:
                return f"unknown column {prefix}{unknown[0]}"
            for field in fields:
                item = value.get(field.name)
                if item is None:
                    if not field.is_nullable:
                        return f"{prefix}{field.name} is missing"
                elif found := _problem(item, field.type, f"{prefix}{field.name}"):
                    return found
            return ""
    expected = _PYTHON[kind]
    is_right = isinstance(value, expected) and (kind == "bool" or not isinstance(value, bool))
    return "" if is_right else f"{path} is no {kind}"


_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "bool": bool,
    "int64": int,
    "float64": (int, float),
}
