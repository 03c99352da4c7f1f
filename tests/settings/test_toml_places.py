"""The places of keys and values: what stands there, read again as TOML, is the key or the value."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.settings.reading import places
from jaxsight.source.text import Range


def slice_of(text: str, range: Range) -> str:
    lines = text.split("\n")
    if range.start.line == range.end.line:
        return lines[range.start.line][range.start.column : range.end.column]
    first = lines[range.start.line][range.start.column :]
    last = lines[range.end.line][: range.end.column]
    return "\n".join([first, *lines[range.start.line + 1 : range.end.line], last])


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("a = 1", ("a",), "1"),
        ("[t]\nb.c = 'x' # end", ("t", "b", "c"), "'x'"),
        ('[tool."my tool"]\nk = true', ("tool", "my tool", "k"), "true"),
        ('k = """\nlong ] text"""\nm = 2', ("m",), "2"),
        ("k = [1, # one\n [2, 3],\n]\n", ("k", 1, 0), "2"),
        ("k = { a = 1, b = { c = 'd' } }", ("k", "b", "c"), "'d'"),
        ("[[t]]\na = 1\n[[t]]\na = 2\n[t.below]\nb = 3", ("t", 1, "a"), "2"),
        ("[[t]]\na = 1\n[[t]]\na = 2\n[t.below]\nb = 3", ("t", 1, "below", "b"), "3"),
        ("when = 1979-05-27 07:32:00\nk = 4", ("k",), "4"),
        ("k = 'é𝒳'\r\nm = 5\r\n", ("m",), "5"),
        ('k = "\\"]"\nm = 6', ("m",), "6"),
        ('k = """a""""\nm = 7', ("m",), "7"),
    ],
)
def test_value_stands_where_it_is_said_to(
    text: str, path: tuple[str | int, ...], value: str
) -> None:
    tomllib.loads(text)
    assert slice_of(text, places(text)[path].value) == value


def test_key_of_a_pair_is_its_whole_dotted_key() -> None:
    text = "[a]\nb . c = 1"
    assert slice_of(text, places(text)["a", "b", "c"].key) == "b . c"


names = st.text(alphabet="abcé ].#\"'", min_size=1, max_size=4)
scalars = st.one_of(
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet="ab\"'\\]}#,=\n𝒳", max_size=6),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def written(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case list():
            return f"[{', '.join(written(item) for item in value)}]"
        case dict():
            pairs = (f"{quoted(key)} = {written(item)}" for key, item in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case _:
            return repr(value)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Any:
    match value:
        case dict():
            for key, item in value.items():
                yield from leaves(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from leaves(item, (*path, index))
        case _:
            yield path, value


@given(st.dictionaries(names, st.dictionaries(names, values, max_size=3), max_size=3))
def test_every_leaf_read_at_its_place_is_the_leaf(document: dict[str, dict[str, Any]]) -> None:
    text = "".join(
        f"[{quoted(table)}] # tables\n"
        + "".join(f"{quoted(key)} = {written(value)}\n" for key, value in pairs.items())
        for table, pairs in document.items()
    )
    assert tomllib.loads(text) == document
    found = places(text)
    for path, value in leaves(document):
        assert tomllib.loads(f"k = {slice_of(text, found[path].value)}")["k"] == value
