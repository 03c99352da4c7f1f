"""Checks as `--check` takes them."""

from __future__ import annotations

import pytest

from jaxsight_repro.checks import base
from jaxsight_repro.checks.base import InvalidCheck
from jaxsight_repro.failures import CRASH, EXCEPTION, FINISHED, HANG, RunFailure

ERROR = RunFailure(
    EXCEPTION, "TypeError", "dot_general requires (8,) and (11,)", "jax._src.lax:dot"
)


@pytest.mark.parametrize(
    ("text", "failure", "holds"),
    [
        ("", ERROR, True),
        ("", RunFailure(FINISHED), False),
        ("exception", ERROR, True),
        ("exception:dot_general", ERROR, True),
        ("exception:^TypeError: dot", ERROR, True),
        ("exception:concatenate", ERROR, False),
        ("exception", RunFailure(CRASH, "SIGSEGV"), False),
        ("crash", RunFailure(CRASH, "SIGABRT"), True),
        ("crash:segv", RunFailure(CRASH, "SIGSEGV"), True),
        ("crash:SIGSEGV", RunFailure(CRASH, "SIGABRT"), False),
        ("hang:2.5", RunFailure(HANG, message="within 2.5 s"), True),
        ("nan", RunFailure(EXCEPTION, "AssertionError", "NaN in result[0]"), True),
        ("nan", ERROR, False),
        ("temp>64MiB", RunFailure(EXCEPTION, "AssertionError", "temporaries of 9 bytes"), True),
        ("retraces>3", RunFailure(EXCEPTION, "AssertionError", "traced 4 times"), True),
    ],
)
def test_what_a_check_names(text: str, failure: RunFailure, holds: bool) -> None:
    assert base.parse(text).holds(failure) is holds


def test_another_failure_of_the_same_kind_is_not_the_same() -> None:
    check = base.parse("exception")
    assert check.same(
        RunFailure(EXCEPTION, "TypeError", "dot_general requires (1,) and (2,)", ERROR.frame), ERROR
    )
    assert not check.same(RunFailure(EXCEPTION, "TypeError", "sub got incompatible shapes"), ERROR)


def test_the_amount_and_direction_of_a_difference_do_not_count() -> None:
    check = base.parse("differs:jit,eager")
    larger = "jit and eager differ: result[0] is larger under jit, relative difference 2.0e+03"
    expected = RunFailure(EXCEPTION, "AssertionError", larger)
    assert check.same(
        RunFailure(EXCEPTION, "AssertionError", larger.replace("2.0e+03", "7.1e-02")), expected
    )
    assert check.same(
        RunFailure(EXCEPTION, "AssertionError", larger.replace("larger", "smaller")), expected
    )
    assert not check.same(
        RunFailure(
            EXCEPTION, "AssertionError", "jit and eager differ: result[0] is NaN only eagerly"
        ),
        expected,
    )


def test_limits_are_part_of_the_demonstration() -> None:
    assert "if used > 67108864:" in base.parse("temp>64MiB").demonstration
    assert "if used > 1500000000:" in base.parse("compile-memory>1.5 GB").demonstration
    assert "if took > 2.5:" in base.parse("compile-time>2.5").demonstration
    assert base.parse("hang:2.5").seconds == 2.5


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hlo:cuda:h100:cublas|gemm", "re.search('cublas|gemm', jaxsight.kernels(main, target='cuda:h100')"),
        ("hlo:cpu:8", "if re.search('8', text):"),
        ("hlo:cpu:8:f32", "re.search('f32', jaxsight.kernels(main, target='cpu:8')"),
        ("hlo:tpu:v5e:2x2:a:b", "re.search('a:b', jaxsight.kernels(main, target='tpu:v5e:2x2')"),
        ("hlo:cpu:fusion: x", "if re.search('fusion: x', text):"),
        ("kernels:tpu:v5e>3", "kernels = jaxsight.kernels(main, target='tpu:v5e')"),
    ],
)  # fmt: skip
def test_a_target_may_have_colons(text: str, line: str) -> None:
    assert line in "\n".join(base.parse(text).demonstration)


def test_flags_become_compiler_options() -> None:
    lines = base.parse("differs:--xla_a=false --xla_b_c=x").demonstration
    assert (
        "others = jax.jit(main, compiler_options={'xla_a': False, 'xla_b_c': 'x'})(*inputs())"
        in lines
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crash:SIGFOO", "unknown signal 'SIGFOO'; expected a name such as SIGSEGV"),
        ("temp>64 miles", "invalid size '64 miles'; expected bytes, such as 64MiB"),
        ("compile-time>fast", "invalid time 'fast'; expected seconds, such as 2.5"),
        ("retraces>-1", "invalid number '-1'; expected a whole number, such as 10"),
        ("temp:64", "invalid check 'temp:64'; expected temp>BYTES"),
        ("kernels:cpu", "invalid check 'kernels:cpu'; expected kernels:TARGET>N"),
        (
            "kernels:cuda:h10>3",
            "unknown target 'cuda:h10'; did you mean cuda:h100 or cuda:a10 or cuda:v100?",
        ),
        (
            "hlo:ssh://there/cpu:x",
            "unsupported target 'ssh://there/cpu'; expected one without a host",
        ),
        ("command:/no/such/script", "script '/no/such/script' does not exist"),
        (
            "differs:foo",
            "invalid check 'differs:foo'; expected differs:jit,eager, differs:FLAGS or differs:PYTHON",
        ),
        (
            "exception:(",
            "invalid regular expression '(': missing ), unterminated subpattern at position 0",
        ),
        (
            "nans",
            "unknown check 'nans'; expected one of command, compile-memory, compile-time, crash, differs, exception, gradient, hang, hlo, kernels, nan, retraces, temp",
        ),
    ],
)
def test_what_is_wrong_with_a_check(text: str, message: str) -> None:
    with pytest.raises(InvalidCheck) as caught:
        base.parse(text)
    assert str(caught.value) == message
