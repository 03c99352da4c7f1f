"""The notation: what is printed is read back, and what is read comes to what the tracer takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.examples.notation.parser import parse_example
from jaxsight.examples.notation.shapes import (
    TYPES,
    AxisSize,
    MeshAxes,
    Sizes,
    read_mesh,
    to_mesh,
)
from jaxsight.examples.notation.tokens import ChunkText, TokenReader
from jaxsight.examples.notation.values import (
    DTYPES,
    KEY_TAGS,
    Arithmetic,
    ArrayNode,
    Axis,
    Division,
    Key,
    LiteralNode,
    NamedSize,
    Node,
    Number,
    Size,
    TreeNode,
    short,
    show,
    show_size,
    to_spec,
)
from jaxsight.wire.meshes import AUTO, Mesh
from jaxsight.wire.messages.inputs import ArraySpec, InputSpec, KeySpec, TreeSpec, ValueSpec

NAMES = st.sampled_from(["B", "d_model", "where", "key", "f32", "größe"])
SIZES: st.SearchStrategy[Size] = st.recursive(
    st.one_of(st.integers(0, 10**6).map(Number), NAMES.map(NamedSize)),
    lambda inner: st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
    max_leaves=6,
)
SHAPES = st.lists(SIZES, max_size=4).map(tuple)
AXES = st.lists(st.sampled_from(["data", "model", "x", "größe", "auto"]), unique=True)


@st.composite
def divided(draw: st.DrawFn, make: Callable[[tuple[Size, ...], Division], Node]) -> Node:
    """An array whose dimensions are divided over some axes, each used at most once."""
    shape = draw(SHAPES)
    division: list[tuple[Axis, ...]] = [() for _ in shape]
    for axis in draw(AXES) if shape else ():
        at = draw(st.integers(0, len(shape) - 1))
        division[at] = (*division[at], Axis(axis))
    return make(shape, tuple(division) if any(division) else ())


@st.composite
def arrays(draw: st.DrawFn) -> Node:
    dtype, weak, on_host = draw(st.sampled_from(DTYPES)), draw(st.booleans()), draw(st.booleans())
    return draw(divided(lambda shape, division: ArrayNode(dtype, shape, weak, division, on_host)))


@st.composite
def keys(draw: st.DrawFn) -> Node:
    tag = draw(st.sampled_from(sorted(KEY_TAGS)))
    return draw(divided(lambda shape, division: Key(tag, shape, division)))


LITERALS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.complex_numbers(allow_nan=False, allow_infinity=False, max_magnitude=1e6).map(
        lambda number: complex(abs(number.real), number.imag)
    ),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.booleans(),
    st.none(),
    st.just(...),
).map(lambda value: LiteralNode(repr(value).strip("()") if value is not ... else "..."))
KEYS = st.one_of(st.text(max_size=5), st.integers(-9, 9)).map(repr)


def trees(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    children = st.lists(inner, max_size=3)

    def with_keys(items: dict[str, Node]) -> Node:
        return TreeNode("dict", tuple(items.values()), tuple(items))

    return st.one_of(
        children.map(lambda c: TreeNode("list", tuple(c))),
        children.map(lambda c: TreeNode("tuple", tuple(c))),
        st.dictionaries(KEYS, inner, max_size=3).map(with_keys),
    )


NODES: st.SearchStrategy[Node] = st.recursive(
    st.one_of(
        arrays(),
        keys(),
        LITERALS,
    ),
    trees,
    max_leaves=8,
)


@given(NODES)
def test_what_is_shown_is_read_back(node: Node) -> None:
    assert parse_example(show(node)) == node


@given(NODES)
def test_spaces_comments_and_line_ends_mean_nothing(node: Node) -> None:
    spaced = show(node).replace(", ", "  ,  # a comment, with [brackets\r\n\t ")
    if not any(quote in spaced for quote in "'\""):
        assert parse_example(spaced) == node


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read_by_both_its_names(dtype: str) -> None:
    assert (
        parse_example(f"{short(dtype)}[2]")
        == parse_example(f"{dtype}[2]")
        == ArrayNode(dtype, (Number(2),))
    )


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        ("f32[4,128, 8 ,64]", ArraySpec("float32", (4, 128, 8, 64))),
        ("f32[]", ArraySpec("float32", ())),
        ("f32[3,]", ArraySpec("float32", (3,))),
        ("~i32[]", ArraySpec("int32", (), weak=True)),
        ("f8_e4m3fn[B, 2*B]", ArraySpec("float8_e4m3fn", (32, 64))),
        ("u8[(D + 1) // 2, D - B % 3]", ArraySpec("uint8", (256, 510))),
        ("f32[8@data,4]", ArraySpec("float32", (8, 4), spec=(("data",), ()))),
        (
            "bf16[B @ (data, model), D, 2*B@x]",
            ArraySpec("bfloat16", (32, 512, 64), spec=(("data", "model"), (), ("x",))),
        ),
        ("f32[8@(data,), 2@()]", ArraySpec("float32", (8, 2), spec=(("data",), ()))),
        ("f32[8@()]", ArraySpec("float32", (8,))),
        ("key<fry>[8@data]", KeySpec("fry", (8,), spec=(("data",),))),
        ("bool[1_000]", ArraySpec("bool", (1000,))),
        ("key<fry>[]", KeySpec("fry", ())),
        ("key<threefry2x32>[8]", KeySpec("fry", (8,))),
        ("key<urbg>[B]", KeySpec("unsafe_rbg", (32,))),
        ("'train'", ValueSpec("'train'", literal=True)),
        ("None", ValueSpec("None", literal=True)),
        ("-1", ValueSpec("-1", literal=True)),
        ("1e-3", ValueSpec("1e-3", literal=True)),
        ("1 + 2j", ValueSpec("1+2j", literal=True)),
        ("(1, (2, 'a'))", ValueSpec("(1, (2, 'a'))", literal=True)),
        ("{1, 2}", ValueSpec("{1, 2}", literal=True)),
        ("{}", ValueSpec("{}", literal=True)),
        ("(f32[2])", ArraySpec("float32", (2,))),
        ("(f32[2],)", TreeSpec("tuple", (ArraySpec("float32", (2,)),))),
        (
            "{'w': f32[B], (0, 'b'): [None, i8[]]}",
            TreeSpec(
                "dict",
                (
                    ArraySpec("float32", (32,)),
                    TreeSpec("list", (ValueSpec("None", literal=True), ArraySpec("int8", ()))),
                ),
                ("'w'", "(0, 'b')"),
            ),
        ),
    ],
)
def test_what_is_written_comes_to(written: str, spec: InputSpec) -> None:
    sizes = Sizes({}, {"B": 32, "D": 512})
    assert to_spec(parse_example(written), sizes.value) == spec


MESHES = st.lists(
    st.builds(
        AxisSize, st.sampled_from(["data", "model", "größe", "auto"]), SIZES, st.sampled_from(TYPES)
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda axis: axis.name,
).map(lambda axes: MeshAxes(tuple(axes)))


def shown(mesh: MeshAxes) -> str:
    """Return the axes as one line of the notation."""
    typed = any(axis.type != AUTO for axis in mesh.axes)
    return ", ".join(
        f"{axis.name}={show_size(axis.size)}{f' {axis.type}' if typed else ''}"
        for axis in mesh.axes
    )


@given(MESHES)
def test_a_mesh_that_is_shown_is_read_back(mesh: MeshAxes) -> None:
    assert read_mesh(TokenReader(ChunkText(shown(mesh)))) == mesh


@pytest.mark.parametrize(
    ("written", "mesh"),
    [
        ("data=2, model=4", Mesh((("data", 2), ("model", 4)))),
        ("data = B // 8,model=2*B", Mesh((("data", 4), ("model", 64)))),
        ("data=2 auto, model=4 auto", Mesh((("data", 2), ("model", 4)))),
        ("data=2 explicit", Mesh((("data", 2),), ("explicit",))),
        ("a=2, b=4 explicit", Mesh((("a", 2), ("b", 4)), ("explicit", "explicit"))),
        ("a=2 explicit, b=4", Mesh((("a", 2), ("b", 4)), ("explicit", "auto"))),
        (
            "a=2, b=2 explicit, c=2 auto, d=2",
            Mesh(
                (("a", 2), ("b", 2), ("c", 2), ("d", 2)), ("explicit", "explicit", "auto", "auto")
            ),
        ),
    ],
)
def test_a_type_applies_to_the_axes_before_it_that_have_none(written: str, mesh: Mesh) -> None:
    read = read_mesh(TokenReader(ChunkText(written)))
    assert to_mesh(read, Sizes({}, {"B": 32}).value) == mesh
