"""`jaxsight.show`: what a cell displays, which is the same as `jaxsight.kernels` knows."""

from __future__ import annotations

import html
import inspect
import json
import linecache
import re
import zlib
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import pytest

import jaxsight
from jaxsight.notebooks.display import CannotShow
from jaxsight.runs.compiled_hlo import numbered

X = jnp.zeros((256, 64))


def normalized(x):
    centred = x - jnp.mean(x, axis=0)
    return jnp.sort(centred * 2, axis=1), centred


def shown_data(shown):
    """What the page in the frame of an output shows."""
    (source,) = re.findall(r'srcdoc="([^"]*)"', shown._repr_html_())
    (data,) = re.findall(r'id="jaxsight-data">([A-Za-z0-9+/=]+)<', html.unescape(source))
    (entry,) = json.loads(zlib.decompress(b64decode(data), -zlib.MAX_WBITS))["entries"]
    return entry


@pytest.fixture(scope="module")
def shown():
    return jaxsight.show(jax.jit(normalized), X, target="cpu", width=500)


def test_the_figures_are_those_of_kernels(shown) -> None:
    found = jaxsight.kernels(normalized, target="cpu")(X)
    drawn = shown_data(shown)["shown"]["drawn"]
    assert [each["name"] for each in drawn["kernels"]] == [k.name for k in found.graph.kernels]
    assert drawn["assigned"] == drawn["memory"]["temporaries"] == found.temp_bytes
    assert drawn["launches"] == found.launch_count
    assert drawn["headline"].startswith(f"{found.kernel_count} kernels · ")
    assert str(shown) == str(found)


def test_lines_of_jaxpr_and_hlo_lead_to_the_source(shown) -> None:
    entry = shown_data(shown)
    for name in ("jaxpr", "stablehlo", "hlo"):
        content = entry["contents"][name]
        lines = content["text"].split("\n")
        sorts = [link for link in content["links"] if "sort" in lines[link["line"]]]
        assert sorts, name
        source = __file__
        assert all(link["uri"].endswith(source) for link in sorts if link["range"])
        start = next(link["range"]["start"] for link in sorts if link["range"])
        assert "jnp.sort" in Path(source).read_text(encoding="utf-8").splitlines()[start["line"]]
    texts = {each["text"] for each in entry["shown"]["drawn"]["equations"]}
    assert {"jnp.mean(x, axis=0)", "centred * 2", "jnp.sort(centred * 2, axis=1)"} <= texts
    assert "metadata" not in entry["contents"]["hlo"]["text"]


def attend(x):
    return jnp.sort(x, axis=0) * 2


def layers(x):
    for _ in range(3):
        x = attend(x)
    with jax.named_scope("head"):
        return jnp.sum(jnp.sort(x, axis=1))


def test_kernels_are_in_groups_as_in_editors() -> None:
    def loss(x):
        return layers(x) ** 2

    drawn = shown_data(jaxsight.show(jax.jit(loss), X, target="cpu"))["shown"]["drawn"]
    titles = [each["title"] for each in drawn["groups"]]
    assert titles == ["layers", "attend 1/3", "attend 2/3", "attend 3/3", "head"]
    sorts = [k for k in drawn["kernels"] if "sort" in k["name"]]
    assert [titles[kernel["group"]] for kernel in sorts] == [*titles[1:4], "head"]
    place = drawn["groups"][0]["place"]
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[place["range"]["start"]["line"]]
    assert "return layers(x) ** 2" in line

    drawn = shown_data(jaxsight.show(jax.value_and_grad(loss), X, target="cpu"))["shown"]["drawn"]
    assert {"forward pass", "backward pass"} <= {
        each["title"].partition(" › ")[0] for each in drawn["groups"] if each["parent"] < 0
    }


SHIFTED = """\
if True:
    def shifted(x):
        y = (
            x
            .sum(axis=0)
        )
        return jnp.sin(y)+jnp.cos(y)+jnp.sin(y)
"""


@pytest.mark.parametrize("lost", [0, 4])
def test_source_is_shown_only_where_it_is_what_was_compiled(lost: int, tmp_path: Path) -> None:
    file = str(tmp_path / "cell.py")
    lines = SHIFTED.splitlines(keepends=True)
    text = "".join(lines if not lost else ["\n", *(line[lost:] for line in lines[1:])])
    names = {"jnp": jnp}
    exec(compile(text, file, "exec"), names)
    linecache.cache[file] = len(SHIFTED), None, lines, file
    figures = jaxsight.kernels(names["shifted"], target="cpu")(X).figures
    texts = sorted(filter(None, map(figures.places.text, figures.equations)))
    whole = "jnp.sin(y)+jnp.cos(y)"
    assert lost or {"sum(axis=0)", "jnp.sin(y)", "jnp.cos(y)", whole, f"{whole}+jnp.sin(y)"} == set(
        texts
    )
    assert not lost or texts == []


def test_the_frame_has_scripts_and_nothing_else(shown) -> None:
    text = shown._repr_html_()
    assert re.findall(r'sandbox="([^"]*)"', text) == ["allow-scripts"]
    assert "<script" not in re.sub(r'srcdoc="[^"]*"', "", text)
    assert "max-width:500px" in text


def test_where_frames_are_removed_the_drawing_is_left(shown) -> None:
    left = re.sub(r"<(iframe|style)[^>]*>.*?</\1>", "", shown._repr_html_(), flags=re.DOTALL)
    (image,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', left)
    drawing = ElementTree.fromstring(b64decode(image))
    assert float(drawing.get("width", "inf")) <= 500
    assert "fusion boundary" in left


def test_the_bundle_has_text_html_and_svg(shown) -> None:
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/svg+xml"}
    assert shown._mime_() == ("text/html", bundle["text/html"])
    ElementTree.fromstring(bundle["image/svg+xml"])


def test_a_still_picture_is_small() -> None:
    shown = jaxsight.show(normalized, X, target="cpu", interactive=False)
    assert len(shown._repr_html_()) < 40_000


def test_keyword_arguments_are_the_functions() -> None:
    def powers(x, n=1):
        for _ in range(n):
            x = jnp.sort(x * x)
        return x

    jitted = jax.jit(powers, static_argnames="n")
    counts = [jaxsight.show(jitted, X, n=n, target="cpu").kernels.kernel_count for n in (1, 3)]
    assert counts == [jaxsight.kernels(jitted, target="cpu")(X, n=n).kernel_count for n in (1, 3)]
    assert counts[0] < counts[1]


@pytest.mark.parametrize("stage", ["trace", "lower", "compile"])
def test_stages_of_jax_are_shown(stage: str) -> None:
    jitted = jax.jit(normalized)
    given = {
        "trace": lambda: jitted.trace(X),
        "lower": lambda: jitted.lower(X),
        "compile": lambda: jitted.lower(X).compile(),
    }[stage]()
    found = jaxsight.show(given, target="cpu")
    expected = jaxsight.kernels(normalized, target="cpu")(X)
    assert found.kernels.kernel_count == expected.kernel_count
    assert found.kernels.temp_bytes == expected.temp_bytes
    lines = {line for kernel in found.kernels.graph.kernels for line in found.kernels.lines(kernel)}
    assert {line.partition(":")[0] for line in lines} == {"test_show.py"}
    assert shown_data(found)["shown"]["drawn"]["equations"]


def test_places_in_the_metadata_of_older_jax_are_read() -> None:
    line = (
        '  %a = f32[] add(%x), metadata={op_name="jit(f)/add" source_file="/m.py" '
        "source_line=3 source_end_line=4 source_column=7 source_end_column=9}"
    )
    text, written = numbered(f'{line}\n  %x = f32[] parameter(0), metadata={{op_name="x"}}')
    assert 'op_name="eq[0]"' in text
    assert 'op_name="x"' in text
    ((operation, at),) = written.values()
    assert (operation, at.chunk, at.line, at.column, at.end_line, at.end_column) == (
        "add", "/m.py", 3, 7, 4, 9,
    )  # fmt: skip


def test_what_has_no_kernels_is_refused() -> None:
    with pytest.raises(CannotShow, match="expected a function, got 3"):
        jaxsight.show(3)
    with pytest.raises(CannotShow, match="pass the function"):
        jaxsight.show(jax.jit(normalized).lower(X).compile(), measure=True)
    with pytest.raises(CannotShow, match="compiled for cpu"):
        jaxsight.show(jax.jit(normalized).lower(X).compile(), target="cuda:h100")


@pytest.mark.slow
def test_measured_times_are_beside_their_kernels() -> None:
    shown = jaxsight.show(normalized, X, target="cpu", measure=True)
    drawn = shown_data(shown)["shown"]["drawn"]
    assert drawn["measured"]["seconds"] == shown.timings.wall_seconds > 0
    times = {row.index: row.seconds for row in shown.timings.kernels if row.index is not None}
    assert times
    assert {i: k["measured"] for i, k in enumerate(drawn["kernels"]) if k["measured"]} == times


def test_source_of_users_is_no_markup() -> None:
    def f(x):
        return x + len("</iframe><script>alert(1)</script>")

    text = jaxsight.show(f, X, target="cpu")._repr_html_()
    assert "<script>alert" not in text
    assert text.count("</iframe>") == 1


def test_editors_know_all_names() -> None:
    stub = Path(jaxsight.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    known = re.findall(r" import (\w+) as \1$|^(\w+): ", stub, re.MULTILINE)
    assert {first or second for first, second in known} == set(jaxsight.__all__)
    for name in jaxsight.__all__:
        if inspect.isfunction(value := getattr(jaxsight, name)):
            assert inspect.signature(value).parameters, name
    parameters = inspect.signature(jaxsight.show).parameters
    assert [*parameters][:5] == ["fn", "args", "width", "height", "target"]
