"""Which devices have which part of an array, and the picture of it."""

from __future__ import annotations

import pytest

from jaxsight.figures.shardings import layout, picture
from jaxsight.wire.meshes import Mesh, Spec

MESH = Mesh((("data", 2), ("model", 4)))


def drawn(mesh: Mesh, *spec: tuple[str, ...]) -> list[str]:
    shown = layout(mesh, spec)
    assert shown is not None
    return picture(shown).splitlines()


def test_a_matrix_over_both_axes_has_a_part_on_each_device() -> None:
    assert drawn(MESH, ("data",), ("model",)) == [
        "┌───┬───┬───┬───┐",
        "│ 0 │ 1 │ 2 │ 3 │",
        "├───┼───┼───┼───┤",
        "│ 4 │ 5 │ 6 │ 7 │",
        "└───┴───┴───┴───┘",
    ]


def test_devices_with_the_same_part_share_a_cell() -> None:
    assert drawn(MESH, ("data",), ()) == [
        "┌─────┐",
        "│ 0–3 │",
        "├─────┤",
        "│ 4–7 │",
        "└─────┘",
    ]
    assert drawn(MESH, ("model",)) == [
        "┌──────┬──────┬──────┬──────┐",
        "│ 0, 4 │ 1, 5 │ 2, 6 │ 3, 7 │",
        "└──────┴──────┴──────┴──────┘",
    ]


def test_the_first_axis_of_a_dimension_is_the_major_one() -> None:
    shown = layout(MESH, (("model", "data"),))
    assert shown is not None
    assert shown == (((0,), (4,), (1,), (5,), (2,), (6,), (3,), (7,)),)


def test_a_mesh_may_have_its_devices_in_another_order() -> None:
    shown = layout(Mesh((("data", 2),), devices=(1, 0)), (("data",),))
    assert shown is not None
    assert shown == (((1,), (0,)),)


def test_of_more_dimensions_the_divided_ones_are_drawn() -> None:
    shown = layout(MESH, ((), ("data",), (), ("model",)))
    assert shown is not None
    assert [len(row) for row in shown] == [4, 4]


def test_a_picture_of_many_devices_is_at_most_12_lines_high() -> None:
    lines = drawn(Mesh((("x", 16), ("y", 16))), ("x",), ("y",))
    assert len(lines) == 11
    assert max(map(len, lines)) <= 88
    assert "⋯" in lines[7]


@pytest.mark.parametrize("spec", [(), (("data",), ("model",), ("other",)), (("other",),)])
def test_what_cannot_be_drawn_has_no_layout(spec: Spec) -> None:
    assert layout(MESH, spec) is None
