"""Reads a module as a program."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import jax

from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.lowered import mlir
from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.jaxprs.base import import_modules, room_for_nesting
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.canonical import PrintedFunctions
from jaxsight_source.stablehlo.evaluation import Evaluation, Mesh
from jaxsight_source.stablehlo.places import Lines, lines_of
from jaxsight_source.stablehlo.program import StablehloProgram, UnreadableProgram, with_plain_names
from jaxsight_source.stablehlo.scans import scans
from jaxsight_source.text.exprs import is_identifier

_WIDE = {"int64", "uint64", "float64", "complex128"}

_64_BITS = re.compile(r"x(?:ui64|i64|f64|complex<f64>)>|tensor<(?:ui64|i64|f64|complex<f64>)>")


def read(program: str | bytes, *, readable: bool = False, linked: bool = False) -> StablehloProgram:
    """Return the main function of a StableHLO module as a jaxpr.

    The program is MLIR's text, its bytecode, or a portable artifact, such as
    `jax.export.Exported.mlir_module_serialized`.

    Args:
        program: the module.
        readable: whether to find calls of library functions, such as `jax.nn.softmax`, and to leave
            broadcasts to JAX. It lowers candidates, which takes tens of milliseconds for each.
        linked: whether to record lines of a text in equations, for `places.read_from`.

    Raises:
        UnreadableProgram: if it is not a StableHLO module, or has an operation that JAX lacks.
    """
    import_modules("jaxsight_source.stablehlo.operations")
    module = _parsed(program)
    with module.context, room_for_nesting():
        lines = lines_of(module, program) if linked and isinstance(program, str) else {}
        return _read(module, lines, readable=readable)


def mesh_devices(program: str | bytes) -> int:
    """Return how many devices the largest mesh of a StableHLO module has, 1 if it has none.

    Raises:
        UnreadableProgram: if it is not a StableHLO module.
    """
    module = _parsed(program)
    with module.context:
        return _devices(_meshes(module))


def _parsed(program: str | bytes) -> ir.Module:
    try:
        return mlir.parse(program)
    except ValueError as error:
        raise UnreadableProgram(" ".join(str(error).split())) from None


def _read(module: ir.Module, lines: Lines, *, readable: bool) -> StablehloProgram:
    functions, meshes = mlir.functions(module), _meshes(module)
    if "main" not in functions:
        public = [name for name, one in functions.items() if _is_public(one)]
        raise UnreadableProgram(
            f"expected a function @main, found {', '.join(public) or 'no public function'}"
        )
    main = functions["main"]
    parameters = main.regions[0].blocks[0].arguments
    structs = [
        None if mlir.is_token(parameter) else _struct(parameter.type) for parameter in parameters
    ]
    parameters = [parameter for parameter in parameters if not mlir.is_token(parameter)]
    printed = PrintedFunctions(functions)
    wide = bool(_64_BITS.search(mlir.print_without_locations(module)))
    # JAX lowers some functions to 64-bit types though they are disabled: these are recognized.
    for attempt in (False, True):
        evaluation = Evaluation(functions, meshes, printed, attempt, readable, scans, lines)
        with jax.enable_x64(wide):
            jaxpr = jax.make_jaxpr(evaluation.function("main"))(*structs)
        if not wide or not _has_64_bits(opened(jaxpr)):
            break
    paths = [_path(parameter) for parameter in parameters]
    return StablehloProgram(
        jaxpr,
        with_plain_names([re.sub(r"\W+", "_", path).strip("_") for path in paths]),
        _title(module),
        tuple(evaluation.opaque),
        evaluation.wide,
        tuple(paths),
        _devices(meshes),
    )


def _meshes(module: ir.Module) -> dict[str, Mesh]:
    meshes: dict[str, Mesh] = {}
    for each in module.body.operations:
        operation = each.operation
        if operation.name == "sdy.mesh":
            axes = re.findall(r'"([^"]+)"=(\d+)', str(operation.attributes["mesh"]))
            meshes[_symbol(operation)] = {name: int(size) for name, size in axes}
    return meshes


def _devices(meshes: Mapping[str, Mesh]) -> int:
    return max((math.prod(mesh.values()) for mesh in meshes.values()), default=1)


def _has_64_bits(program: Program) -> bool:
    """Return whether a program has 64-bit types; JAX itself lowers 32-bit ones to some."""
    jaxpr = program.jaxpr
    atoms = [*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars]
    for equation in jaxpr.eqns:
        atoms += [*equation.invars, *equation.outvars]
        if any(_has_64_bits(part.program) for part in inner_jaxprs(equation)):
            return True
    return any(str(getattr(atom.aval, "dtype", "")) in _WIDE for atom in atoms)


def _symbol(operation: ir.Operation) -> str:
    return str(ir.StringAttr(operation.attributes["sym_name"]).value)


def _is_public(operation: ir.Operation) -> bool:
    visibility = "sym_visibility"
    return visibility not in operation.attributes or "private" not in str(
        operation.attributes[visibility]
    )


def _struct(kind: ir.Type) -> jax.ShapeDtypeStruct:
    if not attributes.tensor(kind).has_static_shape:
        raise UnreadableProgram(f"expected static shapes, got {kind}; help: export it for sizes")
    return attributes.struct(kind)


def _title(module: ir.Module) -> str:
    """Return the name of the function that was lowered: JAX names the module `jit_name`."""
    name = "sym_name"
    found = module.operation.attributes
    title = str(ir.StringAttr(found[name]).value) if name in found else ""
    title = re.sub(r"\W", "_", re.sub(r"^p?jit_", "", title)).strip("_")
    return title if is_identifier(title) else "main"


def _path(parameter: ir.BlockArgument) -> str:
    """Return the name of an argument, which JAX writes as a location: `loc("p['w']")`."""
    place = getattr(parameter, "location", None)  # since jaxlib 0.8.1
    found = re.match(r'loc\("(?P<name>[^":]+)"[()]', str(place))
    return found["name"] if found else ""
