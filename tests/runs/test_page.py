"""The page of a run: texts of the workspace are inert, and it has a maximum size."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from jaxsight.profiles.places import CodePlace
from jaxsight.recording.programs.record import RunProgram
from jaxsight.runs.collected import RunProcess, RunSummary
from jaxsight.runs.merging import merged
from jaxsight.runs.page.document import LARGEST, document
from jaxsight.wire.messages.compiling import Memory
from tests import hostile

HLO = """\
HloModule jit_f, is_scheduled=true

FileNames
1 "/home/me/train.py"
2 "/usr/lib/python3/site-packages/flax/linear.py"

FunctionNames
1 "loss"
2 "dense"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=1 end_column=9}
2 {file_name_id=2 function_name_id=2 line=99 end_line=99 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %sin.1 = f32[8]{0} sine(%p), metadata={op_name="jit(f)/sin" stack_frame_id=2}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %sine_fusion = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused
}
"""
PROGRAM = RunProgram(
    name="f",
    defined=CodePlace("/home/me/train.py", 3),
    called=(CodePlace("/home/me/train.py", 20, "<module>"),),
    arguments=(("x", "f32[8]"),),
    results=("f32[8]",),
    static=(),
    shardings=(),
    context=(),
    function=1,
    is_transformed=False,
    at=1.0,
    trace=0.5,
    lower=0.25,
    compile=2.0,
    is_cached=False,
    saved=0.0,
    memory=Memory(0, 32, 32, 0, 0, 64),
    platform="cpu",
    device="cpu",
    devices=1,
    hlo=HLO,
    jaxpr="{ lambda ; a:f32[8]. let b:f32[8] = sin a in (b,) }",
    equations=1,
    error="",
)


def page(*programs: RunProgram, command: str = "train.py") -> str:
    process = RunProcess(1, 0, ("python", command), 0.0, {}, "0.12.0", "3.12.1", 9.0)
    process.programs += programs
    summary = RunSummary(("python", command), 0, 0.0, 9.0, "0.1")
    return document(summary, [process], merged([process]))


def words(page: str) -> str:
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_kernels_have_the_lines_of_the_user() -> None:
    assert "1 loop fusion 1 32 B 32 B output train.py:12" in words(page(PROGRAM))


def test_stages_are_shown_apart() -> None:
    shown = words(page(PROGRAM))
    assert "tracing 500 ms lowering 250 ms compiling 2.00 s" in shown
    cached = words(page(replace(PROGRAM, is_cached=True, compile=0.01, saved=1.5)))
    assert "read from the cache 10.0 ms saved by the cache 1.50 s" in cached


def test_a_recompilation_of_several_processes_is_shown_once() -> None:
    longer = replace(PROGRAM, arguments=(("x", "f32[9]"),), at=2.0)
    processes = [
        RunProcess(1, 0, ("python",), 0.0, {}, "0.12.0", "3.12.1", 9.0, 0, [PROGRAM, longer]),
        RunProcess(2, 0, ("python",), 0.0, {}, "0.12.0", "3.12.1", 9.0, 1, [PROGRAM, longer]),
    ]
    summary = RunSummary(("python",), 0, 0.0, 9.0, "0.1")
    shown = words(document(summary, processes, merged(processes)))
    (listed,) = re.findall("f compiled .*? help:", shown.replace("train.py:3 compiled", "compiled"))
    assert listed == (
        "f compiled 2 more times (5.50 s) (x: f32[9]) → f32[8] "
        "called at train.py:20, in processes 0, 1 x changed shape: f32[8] → f32[9] help:"
    )
    assert "jax.process_index()=1" in shown


def test_texts_are_in_the_page_as_compressed_data() -> None:
    (data,) = re.findall(r'id="texts">(.*?)</script>', page(PROGRAM, PROGRAM))
    unpacked = [zlib.decompress(base64.b64decode(each), -15).decode() for each in json.loads(data)]
    assert unpacked == [PROGRAM.jaxpr, PROGRAM.hlo]


def test_the_permalink_of_a_program_is_the_same_in_the_next_run() -> None:
    first, second = page(PROGRAM), page(replace(PROGRAM, at=5.0, compile=1.0, function=7))
    links = [re.findall(r'<details id="([0-9a-f]{12})"', each) for each in (first, second)]
    assert links[0] == links[1]
    assert len(links[0]) == 1


@pytest.mark.parametrize("text", hostile.TEXTS.values(), ids=hostile.TEXTS)
def test_texts_of_the_workspace_are_inert(text: str) -> None:
    program = replace(
        PROGRAM,
        name=text,
        defined=CodePlace(text, 1, text),
        called=(CodePlace(text, 2, text),),
        arguments=((text, text),),
        static=((text, text),),
        shardings=(text,),
        context=((text, text),),
        jaxpr=text,
        hlo=HLO.replace("train.py", text.replace("\n", " ").replace('"', "")),
        error=text,
    )
    other = replace(program, arguments=((text, "f32[9]"),), static=((text, "1"),), function=2)
    shown = page(program, other, command=text)
    assert hostile.hidden(shown) == []
    elements = _Elements()
    elements.feed(shown)
    assert not elements.names & {"img", "iframe", "object", "link", "base", "form"}
    assert elements.scripts == 2
    assert all(link.startswith("#") for link in elements.links)


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.scripts += tag == "script"
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("href", "src"):
                self.links.append(value or "")


def test_a_page_has_at_most_two_megabytes_and_says_what_is_left_out() -> None:
    noise = random.Random(0)
    programs = [
        replace(
            PROGRAM,
            name=f"f{number}",
            compile=float(number),
            jaxpr=noise.randbytes(10_000).hex(),
            arguments=tuple((f"x{index}", f"f32[{number}]") for index in range(40)),
        )
        for number in range(300)
    ]
    shown = page(*programs)
    assert len(shown.encode()) <= LARGEST
    assert "that took less time are left out, as the page is full" in shown
    assert "The jaxpr is left out, as the page would be too large." in shown
    assert '<code class="name">f299</code>' in shown
    assert '<code class="name">f0</code>' not in shown
