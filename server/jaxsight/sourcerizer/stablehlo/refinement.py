"""A module with dynamic dimensions, at sizes: StableHLO's own refinement of shapes.

`stablehlo-refine-shapes` propagates the types of @main's arguments, and computes what depends on
sizes only; `stablehlo-canonicalize-dynamism` then replaces `dynamic_broadcast_in_dim` and the like
(https://openxla.org/stablehlo/dynamism). It refines a function for one call: functions that compute
with sizes, such as JAX's `divmod`, are copied for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jaxsight.sourcerizer.compat import mlir
from jaxsight.sourcerizer.compat.mlir import ir
from jaxsight.sourcerizer.stablehlo import attributes
from jaxsight.sourcerizer.stablehlo.operations.regions import constant_of
from jaxsight.sourcerizer.stablehlo.program import UnreadableProgram

INSIDE = "_wrapped_jax_export_main"
"""The function that `jax.export` calls with the sizes that @main computes (`jax/_src/export`)."""

_OUTSIDE = "_of_any_size"

_DYNAMIC = re.compile(r"tensor<[\dx]*\?")

_NAMED = re.compile(r'loc\("[^"\\]*"\)')

_SCALAR = re.compile(r"tensor<(?:i1|i32|i64)>")


class WrongSizes(UnreadableProgram):
    """Sizes that a program does not take."""


def described(program: str | bytes) -> str:
    """Return what a module's assertion says of its inputs' shapes: `args[0].shape = (b, 4)`."""
    module = mlir.parse(program)
    with module.context:
        for operation in _inside(module.operation):
            if _is_assertion(operation):
                message = _text(operation, "error_message")
                _, found, shapes = message.partition("polymorphic shapes specifications: ")
                return shapes.partition(". Obtained")[0] if found else ""
    return ""


def inputs(program: str | bytes) -> list[list[int | None]]:
    """Return the sizes of @main's inputs, None for dynamic ones."""
    module = mlir.parse(program)
    with module.context:
        main = mlir.functions(module)["main"]
        types = [attributes.tensor(one.type) for one in main.regions[0].blocks[0].arguments]
        if not all(one.has_rank for one in types):
            raise UnreadableProgram("an input has no rank")
        return [
            [
                None if one.is_dynamic_dim(axis) else one.get_dim_size(axis)
                for axis in range(one.rank)
            ]
            for one in types
        ]


def refined(program: str | bytes, shapes: Sequence[Sequence[int]]) -> str:
    """Return a module, as text, for shapes of the inputs of its @main.

    Raises:
        WrongSizes: an assertion of the module fails, or the shapes contradict each other.
        UnreadableProgram: a size does not follow from these shapes.
    """
    module = mlir.parse(program)
    with module.context:
        main = mlir.functions(module)["main"]
        caller = _caller(main, shapes, _names(mlir.functions(module), len(shapes)))
        main.attributes["sym_name"] = ir.StringAttr.get(_OUTSIDE)
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        text = str(module.operation.get_asm(enable_debug_info=True))
        end = text.rindex("\n}")
        called = f"{text[:end]}\n{caller}{text[end:]}"
        module = ir.Module.parse(called)
        _copy_computations_of_sizes(module)
        try:
            mlir.refine(module)
        except ir.MLIRError as error:
            raise WrongSizes(" ".join(str(error).split())[:200]) from None
        is_known = _without_assertions(module)
        if not is_known or _DYNAMIC.search(str(module)):
            # XLA also refines calls such as `dynamic_reduce_window`, and inlines functions.
            module = _refined_by_xla(called)
        else:
            _without_callers(module)
        _fold_conversions(module)
        return str(module.operation.get_asm(enable_debug_info=True))


def _names(functions: Mapping[str, ir.Operation], count: int) -> list[str]:
    """Return the locations of the arguments, which have their names."""
    function = functions.get(INSIDE, functions["main"])
    arguments = [*function.regions[0].blocks[0].arguments][-count:] if count else []
    places = (
        str(getattr(argument, "location", "")) for argument in arguments
    )  # since jaxlib 0.8.1
    return [place if _NAMED.fullmatch(place) else "" for place in places]


def _caller(main: ir.Operation, shapes: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Return a @main of arrays with static shapes, which calls the module's."""
    types = [attributes.tensor(one.type) for one in main.regions[0].blocks[0].arguments]
    results = [str(one) for one in _results(main)]
    static = [
        f"tensor<{''.join(f'{size}x' for size in shape)}{one.element_type}>"
        for one, shape in zip(types, shapes, strict=True)
    ]
    listed = ", ".join(
        f"%a{at}: {one} {name}" for at, (one, name) in enumerate(zip(static, names, strict=True))
    )
    passed = ", ".join(f"%c{at}" for at in range(len(types)))
    returned = ", ".join(f"%r#{at}" if len(results) > 1 else "%r" for at in range(len(results)))
    named = f"%r{f':{len(results)}' if len(results) > 1 else ''} = " if results else ""
    given, found = ", ".join(map(str, types)), ", ".join(results)
    return "\n".join(
        [
            f"func.func public @main({listed}) -> ({found}) {{",
            *(
                f"%c{at} = stablehlo.convert %a{at} : ({one}) -> {types[at]}"
                for at, one in enumerate(static)
            ),
            f"{named}func.call @{_OUTSIDE}({passed}) : ({given}) -> ({found})",
            f"return {returned} : {found}" if results else "return",
            "}",
        ]
    )


def _results(function: ir.Operation) -> list[ir.Type]:
    return list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)


def _copy_computations_of_sizes(module: ir.Module) -> None:
    """Give each call of a function of integers, to integers, a function of its own."""
    functions, called, waiting = mlir.functions(module), {"main"}, ["main"]
    while waiting:
        for operation in _inside(functions[waiting.pop()]):
            if operation.name != "func.call":
                continue
            name = str(ir.FlatSymbolRefAttr(operation.attributes["callee"]).value)
            values = [*operation.operands, *operation.results]
            if name in called and all(_SCALAR.fullmatch(str(value.type)) for value in values):
                copy = functions[name].clone(ip=ir.InsertionPoint(module.body)).operation
                name = f"{name}_of_size_{len(functions)}"
                copy.attributes["sym_name"] = ir.StringAttr.get(name)
                operation.attributes["callee"] = ir.FlatSymbolRefAttr.get(name)
                functions[name] = copy
            if name not in called:
                called.add(name)
                waiting.append(name)


def _without_assertions(module: ir.Module) -> bool:
    """Remove the assertions of shapes; return whether all are known to hold."""
    is_known = True
    for operation in [*_inside(module.operation)]:
        if _is_assertion(operation):
            holds = constant_of(operation.operands[0])
            if holds is not None and not holds:
                raise WrongSizes(_text(operation, "error_message")[:200])
            is_known &= holds is not None
            operation.erase()
    return is_known


def _refined_by_xla(text: str) -> ir.Module:
    try:
        return mlir.refine_polymorphic_shapes(ir.Module.parse(text))
    except ValueError:
        why = "a size does not follow from the shapes of the arguments"
        raise WrongSizes(why) from None


def _fold_conversions(module: ir.Module) -> None:
    """Replace sizes that are converted to another type, as in a mean, by constants, as JAX does."""
    for operation in [*_inside(module.operation)]:
        if (
            operation.name != "stablehlo.convert"
            or attributes.tensor(operation.results[0].type).rank
        ):
            continue
        size = constant_of(operation.operands[0])
        kind = operation.results[0].type
        if size is not None and kind != operation.operands[0].type and size.dtype.kind == "i":
            dtype = attributes.dtype_of(attributes.tensor(kind).element_type)
            with ir.InsertionPoint(operation), operation.location:
                converted = mlir.constant(size.astype(dtype).item(), kind)
            operation.results[0].replace_all_uses_with(converted)


def _without_callers(module: ir.Module) -> None:
    """Make the function that has the program @main, in place of those that only call it."""
    functions = mlir.functions(module)
    functions["main"].erase()
    main = functions[_OUTSIDE]
    if INSIDE in functions and _only_calls(main):
        main.erase()
        main = functions[INSIDE]
    main.attributes["sym_name"] = ir.StringAttr.get("main")
    main.attributes["sym_visibility"] = ir.StringAttr.get("public")


def _only_calls(function: ir.Operation) -> bool:
    """Return whether a function returns what another one returns for its arguments."""
    block = function.regions[0].blocks[0]
    calls = [one.operation for one in block.operations if one.operation.name == "func.call"]
    end = [*block.operations][-1].operation
    return (
        len(calls) == 1
        and [*calls[0].operands] == [*block.arguments]
        and [*end.operands] == [*calls[0].results]
    )


def _is_assertion(operation: ir.Operation) -> bool:
    return (
        operation.name == "stablehlo.custom_call"
        and _text(operation, "call_target_name") == "shape_assertion"
    )


def _text(operation: ir.Operation, name: str) -> str:
    return str(ir.StringAttr(operation.attributes[name]).value)


def _inside(operation: ir.Operation) -> Iterator[ir.Operation]:
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                yield each.operation
                yield from _inside(each.operation)
