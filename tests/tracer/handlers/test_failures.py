"""Exceptions of user code as the server gets them."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from jaxsight.tracer import failures
from jaxsight.wire.chunks import chunk_file
from jaxsight.wire.observations import Failure
from tests.tracer.handlers.lab import PATH, Lab, lab

HEAD = "import jax, jax.numpy as jnp, numpy as np\n"


def places(file: Lab, failed: Failure) -> list[str]:
    """The frames, by the text that they blame."""
    return [
        f"{frame.function}: {file.at(frame.span)}"
        if frame.span
        else f"{frame.function} in a library"
        for frame in failed.frames
    ]


def test_frames_lead_down_the_call_chain_with_exact_columns() -> None:
    file = lab(
        HEAD + "def inner(a, b):\n    return (a @ b) + 1\n",
        "def f(x):\n    y = jax.vmap(lambda v: inner(v, v))(x)\n    return y\n",
    )
    failed = file.fails("f", x="f32[2,3,4]").failure
    assert failed.stage == "trace"
    assert failed.type == "TypeError"
    assert "dot_general requires contracting dimensions" in failed.message
    assert places(file, failed) == [
        "f: jax.vmap(lambda v: inner(v, v))(x)",
        "f.<locals>.<lambda>: inner(v, v)",
        "inner: a @ b",
    ]
    assert failed.frames[0].file == PATH


@pytest.mark.parametrize(
    ("body", "type", "blamed"),
    [
        ("if x > 0: return x\n    return -x", "jax.errors.TracerBoolConversionError", "x > 0"),
        ("while x > 0:\n        x = x - 1\n    return x", "jax.errors.TracerBoolConversionError", "x > 0"),
        ("return np.asarray(x)", "jax.errors.TracerArrayConversionError", "np.asarray(x)"),
        ("return [1, 2][x.astype(int)]", "jax.errors.TracerIntegerConversionError", "[1, 2][x.astype(int)]"),
        ("return jnp.ones(2)[jnp.ones(2) > x]", "jax.errors.NonConcreteBooleanIndexError", "jnp.ones(2)[jnp.ones(2) > x]"),
        ("return float(x)", "jax.errors.ConcretizationTypeError", "float(x)"),
        ("return jnp.zeros(x.astype(int))", "TypeError", "jnp.zeros(x.astype(int))"),
        ("return undefined", "NameError", "undefined"),
        ("x[0] = 1", "TypeError", "x[0]"),
    ],
)  # fmt: skip
def test_jax_errors_keep_their_class_and_blame_the_expression(
    body: str, type: str, blamed: str
) -> None:
    file = lab(HEAD + f"def f(x):\n    {body}\n")
    failed = file.fails("f", x="f32[]").failure
    assert failed.type == type
    assert places(file, failed)[-1] == f"f: {blamed}"


def test_a_jax_error_names_the_function_and_argument() -> None:
    file = lab(HEAD + "def f(scale, x):\n    return x if scale > 0 else -x\n")
    failed = file.fails("f", scale="f32[]", x="f32[3]").failure
    assert "the function f at" in failed.message
    assert "the argument scale" in failed.message
    assert "jax.errors.ConcretizationTypeError" in failed.bases
    assert "TypeError" in failed.bases


def test_messages_have_no_addresses() -> None:
    file = lab(
        HEAD
        + "@jax.jit\ndef g(x, how):\n    return x\n"
        + "def f(x):\n    return g(x, 'sum')\n"
        + "def h(x):\n    raise ValueError(f'{object()}, {h}')\n"
    )
    assert (
        "argument to <function g> as an abstract array"
        in file.fails("f", x="f32[]").failure.message
    )
    assert file.fails("h", x="f32[]").failure.message == "<object object>, <function h>"


def test_a_leaked_tracer() -> None:
    file = lab(
        HEAD
        + "kept = []\n@jax.jit\ndef g(x):\n    kept.append(x * 2)\n    return x\ndef f(x):\n    g(x)\n    return kept[0] + 1\n"
    )
    failed = file.fails("f", x="f32[3]").failure
    assert failed.type == "jax.errors.UnexpectedTracerError"
    assert places(file, failed) == ["f: kept[0] + 1"]


def test_the_library_frame_that_user_code_called_is_kept() -> None:
    file = lab("import json\ndef f(x):\n    return json.loads('[1,')\n")
    failed = file.fails("f", x="f32[3]").failure
    assert failed.type == "json.decoder.JSONDecodeError"
    assert places(file, failed) == ["f: json.loads('[1,')", "JSONDecoder.raw_decode in a library"]
    assert failed.frames[-1].line > 0


def test_causes_and_contexts() -> None:
    file = lab(
        "def g():\n    raise KeyError('k')\n"
        + "def f(x):\n    try:\n        g()\n    except KeyError as error:\n        raise ValueError('v') from error\n"
        + "def h(x):\n    try:\n        g()\n    except KeyError:\n        raise ValueError('v')\n"
        + "def n(x):\n    try:\n        g()\n    except KeyError:\n        raise ValueError('v') from None\n"
    )
    for name in ("f", "h"):
        failed = file.fails(name, x="f32[3]").failure
        assert failed.type == "ValueError"
        assert failed.cause is not None
        assert failed.cause.type == "KeyError"
        assert places(file, failed.cause) == [f"{name}: g()", "g: raise KeyError('k')"]
    assert file.fails("n", x="f32[3]").failure.cause is None


def test_groups_list_what_they_hold() -> None:
    file = lab(
        "def f(x):\n    raise ExceptionGroup('several', [ValueError('a'), TypeError('b')])\n"
    )
    failed = file.fails("f", x="f32[3]").failure
    assert failed.notes == ("1. ValueError: “a”", "2. TypeError: “b”")
    assert failed.cause is not None
    assert failed.cause.type == "ValueError"


def test_notes_of_the_user_are_kept_and_jax_note_on_filtering_is_not() -> None:
    file = lab(
        HEAD
        + "def f(x):\n    try:\n        return jax.jit(jnp.dot)(x, jnp.ones(9))\n    except TypeError as error:\n        error.add_note('mine')\n        raise\n"
    )
    assert file.fails("f", x="f32[3]").failure.notes == ("“mine”",)


def test_messages_that_raise_or_carry_surrogates() -> None:
    file = lab(
        "class Bad(Exception):\n    def __str__(self): raise RuntimeError\n"
        + "def f(x): raise Bad\n"
        + "def g(x): raise ValueError('\\ud800')\n"
    )
    assert file.fails("f", x="f32[3]").failure.message == "<its message raised RuntimeError>"
    assert file.fails("g", x="f32[3]").failure.message == "\\ud800"


def test_a_runaway_recursion_shows_its_round_and_not_all_of_them() -> None:
    file = lab(
        "def g(x):\n    return h(x)\ndef h(x):\n    return g(x)\ndef f(x):\n    return g(x)\n"
    )
    failed = file.fails("f", x="f32[3]").failure
    assert failed.type == "RecursionError"
    assert places(file, failed)[:3] == ["f: g(x)", "g: h(x)", "h: g(x)"]
    assert len(failed.frames) < 10


def test_exit_is_a_failure() -> None:
    file = lab("def f(x):\n    raise SystemExit(3)\n")
    failed = file.fails("f", x="f32[3]").failure
    assert (failed.type, failed.message) == ("SystemExit", "3")


def test_a_syntax_error_in_a_chunk_says_where() -> None:
    file = chunk_file(PATH, "0" * 16)
    with pytest.raises(SyntaxError) as caught:
        ast.parse("x = 'é' +\n", file)
    frame = failures.failure(caught.value, "execute").frames[-1]
    assert frame.span is not None
    assert (frame.file, frame.span.line) == (PATH, 1)
    assert frame.span.column >= len("x = 'é' +".encode())


def test_lines_of_a_chunk_count_from_its_first_one() -> None:
    file = chunk_file(PATH, "0" * 16, 40)
    with pytest.raises(SyntaxError) as misplaced:
        compile("\n" * 40 + "x = 1\nreturn x\n", file, "exec")
    code = compile("\n" * 40 + "x = 1\nundefined\n", file, "exec")
    with pytest.raises(NameError) as undefined:
        exec(code, {})
    for raised in (misplaced, undefined):
        frame = failures.failure(raised.value, "execute").frames[-1]
        assert frame.span is not None
        assert (frame.file, frame.line, frame.span.line, frame.span.end_line) == (PATH, 2, 2, 2)


def test_a_chain_that_loops_ends() -> None:
    one, other = ValueError("1"), ValueError("2")
    one.__cause__, other.__cause__ = other, one
    told: Any = failures.failure(one, "trace")
    assert told.cause.message == "2"
    assert told.cause.cause is None
