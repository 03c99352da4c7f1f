"""Texts are parsed while other threads parse, and whatever the garbage collector does meanwhile."""

from __future__ import annotations

import ast
import gc
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from jaxsight.text.parsing import expression_in, literal_in, module_in, parse

DEEP = "f(" * 30 + "x" + ")" * 30
LONG = "\n".join(f"def g{i}(x):\n    return {DEEP} + [1, (2, {DEEP})][0]" for i in range(40))
TOO_DEEP = "(" * 5000 + ")" * 5000


@pytest.fixture
def interrupting_collector() -> Iterator[None]:
    """A garbage collector that lets other threads run, as one with finalizers does."""
    interval = sys.getswitchinterval()
    callback = lambda phase, info: [None for _ in range(50)]
    gc.callbacks.append(callback)
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    gc.callbacks.remove(callback)


@pytest.mark.usefixtures("interrupting_collector")
def test_threads_parse_beside_one_that_takes_no_turn() -> None:
    """Python before 3.11.8 and 3.12.2 counts the depth of trees for all threads together."""
    failed: list[BaseException] = []
    end = time.monotonic() + 1

    def parsing() -> None:
        while time.monotonic() < end and not failed:
            try:
                parse(LONG)
                parse("a + b\n" * 500)
            except SystemError as error:
                failed.append(error)

    def careless() -> None:
        while time.monotonic() < end and not failed:
            try:
                ast.parse(LONG)
            except SystemError:
                continue

    threads = [threading.Thread(target=work) for work in (parsing, parsing, careless)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert gc.isenabled()


@pytest.mark.parametrize("text", ["f(", "\0", TOO_DEEP, "-" * 100_000 + "1"])
def test_a_text_that_does_not_parse(text: str) -> None:
    assert module_in(text) is None
    assert expression_in(text) is None
    with pytest.raises(ValueError, match="not a literal"):
        literal_in(text)
    with pytest.raises((SyntaxError, ValueError, RecursionError, MemoryError)):
        parse(text)
    assert gc.isenabled()


def test_warnings_are_for_who_runs_the_text() -> None:
    text = r"'\d' is 1"
    assert module_in(text) is not None
    assert expression_in(f"\n  {text} \n") is not None


@pytest.mark.parametrize("text", ["f(x)", "x", "{[]: 1}", "1 +"])
def test_no_literals(text: str) -> None:
    with pytest.raises(ValueError, match="not a literal"):
        literal_in(text)


def test_literals() -> None:
    assert literal_in(" (1, -2.5, 'x', {3: None})\n") == (1, -2.5, "x", {3: None})
