"""The wire: what is sent arrives equal, and nothing else arrives at all."""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxsight.wire import frames as wire
from jaxsight.wire.chunks import Span
from jaxsight.wire.kernel_graph import Edge, End, Value
from jaxsight.wire.messages.compiling import Compile
from jaxsight.wire.messages.inputs import ArraySpec, KeySpec, TreeSpec, ValueSpec
from jaxsight.wire.messages.replies import FromTracer, Listing, Stage, Traced
from jaxsight.wire.messages.requests import Cancel, ToTracer
from jaxsight.wire.observations import ExprValue, Observation

text = st.text(st.characters(exclude_categories=()), max_size=12)
"""Any Python string, lone surrogates included."""

specs = st.deferred(
    lambda: (
        st.builds(ArraySpec, dtype=text, shape=shapes, weak=st.booleans())
        | st.builds(KeySpec, impl=text, shape=shapes)
        | st.builds(ValueSpec, source=text, literal=st.booleans())
        | st.builds(
            TreeSpec,
            kind=st.sampled_from(("dict", "list", "tuple")),
            children=st.lists(specs, max_size=3).map(tuple),
            keys=st.lists(text, max_size=3).map(tuple),
        )
    )
)
shapes = st.lists(st.integers(min_value=0), max_size=3).map(tuple)
st.register_type_strategy(str, text)
st.register_type_strategy(float, st.floats(allow_nan=False))
for kind in (ArraySpec, KeySpec, ValueSpec, TreeSpec):
    st.register_type_strategy(kind, specs.filter(lambda spec, kind=kind: isinstance(spec, kind)))

messages = st.deferred(
    lambda: st.one_of([st.from_type(kind) for kind in get_args(ToTracer | FromTracer)])
)


@given(messages)
def test_every_message_arrives_equal(message: wire.Message) -> None:
    assert list(wire.FrameReader().feed(wire.encode(message))) == [message]


@given(st.lists(messages, max_size=4), st.data())
def test_frames_arrive_whatever_the_pieces(sent: list[wire.Message], data: st.DataObject) -> None:
    stream = b"".join(map(wire.encode, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    reader = wire.FrameReader()
    got = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += reader.feed(stream[start:end])
    assert got == sent


@given(st.binary(max_size=200))
def test_a_body_of_noise_is_an_error(body: bytes) -> None:
    with pytest.raises(wire.WireError):
        list(wire.FrameReader().feed(struct.pack(">I", len(body)) + body))


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"1e999999",
        b"9" * 10_000,
        b"[" * 200_000,
        b'{"type": "Cancel"}',
        b'{"type": "Cancel", "id": "1"}',
        b'{"type": "Cancel", "id": true}',
        b'{"type": "Cancel", "id": 1, "more": 2}',
        b'{"type": "Span", "chunk": ""}',
        b'{"type": ["Cancel"], "id": 1}',
        b'{"type": "Listing", "id": 1, "text": "", "links": [[1, "", [1, 2]]]}',
        b'{"type": "Listing", "id": 1, "text": "", "links": {}}',
        b"\xff\xfe",
    ],
)
def test_what_is_almost_a_message_is_an_error(body: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode(body)


def test_print_on_the_protocols_descriptor_is_an_error_at_once() -> None:
    with pytest.raises(wire.WireError, match="limit"):
        list(wire.FrameReader().feed(b"Hello, I am user code\n"))


def test_a_field_left_out_has_its_default() -> None:
    assert wire.decode(b'{"type": "Stage", "id": 3, "stage": "trace"}') == Stage(3, "trace")


def test_a_message_over_the_limit_is_not_sent() -> None:
    with pytest.raises(wire.WireError, match="exceeds"):
        wire.encode(Listing(1, "x" * wire.FRAME_LIMIT))


def test_a_program_with_large_constants_is_sent_to_a_compiler() -> None:
    sent = Compile(1, "cuda:h100", "A" * wire.FRAME_LIMIT)
    frame = wire.encode(sent)
    assert list(wire.FrameReader(wire.PROGRAM_LIMIT).feed(frame)) == [sent]
    with pytest.raises(wire.WireError, match="exceeds"):
        list(wire.FrameReader().feed(frame))


def test_a_value_that_json_lacks_is_not_sent() -> None:
    with pytest.raises(wire.WireError, match="Cancel"):
        wire.encode(Cancel(object()))  # type: ignore[arg-type]


def test_thousands_of_observations_arrive_equal_in_a_file() -> None:
    span = [Span("0123456789abcdef", n, 4, n, 20) for n in range(2000)]
    traced = Traced(
        1, (("x", "f32[3]"),), "f32[3]", "", False, 1,
        seen=(ExprValue("f32[3]", inside=("scan body",)),),
        observations=tuple(Observation(each, "expression", (0,)) for each in span),
    )  # fmt: skip
    sink = io.BytesIO()
    wire.write(sink, traced)
    assert list(wire.FrameReader().feed(sink.getvalue())) == [traced]


def test_a_message_goes_whole_through_a_pipe_smaller_than_it() -> None:
    shown = Listing(1, "é" * 1_000_000)
    read, write = os.pipe()
    reader = wire.FrameReader()
    got: list[wire.Message] = []

    def drain() -> None:
        while data := os.read(read, 65536):
            got.extend(reader.feed(data))

    thread = threading.Thread(target=drain)
    thread.start()
    wire.write(write, shown)
    os.close(write)
    thread.join()
    os.close(read)
    assert got == [shown]


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let threads take turns after nearly every instruction."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
def test_threads_that_decode_their_first_messages_at_once_get_them_equal() -> None:
    # Long messages of two compilers are decoded in two threads.
    kinds = (Observation, Edge, ArraySpec)
    value = Value("f32[3]", "0", 12)
    records = (
        Observation(Span("0", 0, 0, 0, 1), "expression", (0,)),
        Edge(End("parameter", 0), End("output", 0), value),
        ArraySpec("f32", (3,)),
    )
    threads = 4
    for _ in range(200):
        wire._record.cache_clear()
        wire._plan.cache_clear()
        wire._codec.cache_clear()
        codecs = [wire._record(kind) for kind in kinds]
        together = threading.Barrier(threads)

        def exchange(codecs: list[tuple[Any, Any]] = codecs, together: Any = together) -> list[Any]:
            together.wait()
            pairs = zip(codecs, records, strict=True)
            return [unpack(json.loads(json.dumps(pack(one)))) for (pack, unpack), one in pairs]

        with ThreadPoolExecutor(threads) as pool:
            results = [pool.submit(exchange) for _ in range(threads)]
        assert [result.result() for result in results] == [list(records)] * threads


def test_messages_before_the_first_error_arrive() -> None:
    arrived = wire.FrameReader().feed(wire.encode(Cancel(1)) + b"noise")
    assert next(arrived) == Cancel(1)
    with pytest.raises(wire.WireError):
        next(arrived)
