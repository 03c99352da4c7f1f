"""A chunk runs once for each meaning; a request sees its own slice and nothing else."""

from dataclasses import replace
from itertools import groupby

from jaxsight.wire.messages.replies import Traced
from tests.tracer.isolation.driver import Driver

MODULE = """
import jax.numpy as jnp

print("building the table")
TABLE = jnp.arange(4.0)

def helper(x):
    return x * TABLE

def f(x):
    return helper(x) + 1.0

def g(x):
    return helper(x) - 1.0
"""


def test_an_unchanged_function_executes_nothing_again(tracer: Driver) -> None:
    assert tracer.trace(MODULE).executed > 0
    assert tracer.trace(MODULE).executed == 0


def test_an_edit_of_the_function_executes_that_function_alone(tracer: Driver) -> None:
    tracer.trace(MODULE)
    edited = tracer.trace(MODULE.replace("+ 1.0", "+ 2.0"))
    assert edited.executed == 1
    assert "2.0" in edited.jaxpr


def test_an_edit_of_what_it_uses_executes_both(tracer: Driver) -> None:
    tracer.trace(MODULE)
    edited = tracer.trace(MODULE.replace("x * TABLE", "x / TABLE"))
    assert edited.executed == 2
    assert "div" in edited.jaxpr


def test_undoing_an_edit_executes_nothing(tracer: Driver) -> None:
    tracer.trace(MODULE)
    tracer.trace(MODULE.replace("+ 1.0", "+ 2.0"))
    undone = tracer.trace(MODULE)
    assert undone.executed == 0
    assert "2.0" not in undone.jaxpr


def test_functions_of_one_file_share_what_both_need(tracer: Driver) -> None:
    tracer.trace(MODULE, "f")
    assert tracer.trace(MODULE, "g").executed == 1


def test_a_comment_executes_nothing_and_spans_are_those_of_the_text_that_ran(
    tracer: Driver,
) -> None:
    request = tracer.request(MODULE)
    tracer.send(request)
    tracer.answer()
    commented = MODULE.replace("return helper(x) + 1.0", "# a comment\n    return helper(x) + 1.0")
    answer = tracer.trace(commented)
    assert answer.executed == 0
    assert {seen.span.chunk for seen in answer.observations} <= {c.id for c in request.chunks}
    assert answer.observations


def test_a_name_that_left_the_file_is_gone(tracer: Driver) -> None:
    tracer.trace(MODULE)
    failed = tracer.fail(MODULE.replace("def helper", "def other"))
    assert failed.failure.type == "NameError"
    assert failed.failure.stage == "trace"


def test_a_chunk_that_raised_runs_again(tracer: Driver) -> None:
    broken = "LIMIT = open('limit.txt').read()\ndef f(x):\n    return x * float(LIMIT)\n"
    failed = tracer.fail(broken)
    assert failed.failure.type == "FileNotFoundError"
    assert failed.failure.message == "`limit.txt` does not exist"
    (tracer.project / "limit.txt").write_text("3")
    assert "3.0" in tracer.trace(broken).jaxpr


def test_equal_statements_each_run(tracer: Driver) -> None:
    text = "n = 1\nn += 1\nn += 1\ndef f(x):\n    return x * n\n"
    assert "3.0" in tracer.trace(text).jaxpr
    assert "3.0" in tracer.trace(text).jaxpr
    assert tracer.trace(text).executed == 0


def test_what_a_later_statement_changed_in_place_starts_afresh(tracer: Driver) -> None:
    text = "sizes = {}\nsizes['a'] = 2\nsizes['b'] = len(sizes)\ndef f(x):\n    return x * sizes['b']\n"
    assert "1.0" in tracer.trace(text).jaxpr
    edited = tracer.trace(text.replace("len(sizes)", "len(sizes) + 5"))
    assert "6.0" in edited.jaxpr


def test_code_that_nothing_asks_for_does_not_run(tracer: Driver) -> None:
    tracer.trace(MODULE + "\nwhile True:\n    pass\n")


def test_the_source_of_a_function_can_be_had(tracer: Driver) -> None:
    text = """
    import inspect
    def helper(x):
        return x * 7.0
    LINES = len(inspect.getsource(helper).splitlines())
    def f(x):
        return x * LINES
    """
    assert "2.0" in tracer.trace(text).jaxpr


def test_future_imports_hold_in_every_chunk(tracer: Driver) -> None:
    text = """
    from __future__ import annotations
    import dataclasses
    @dataclasses.dataclass
    class Config:
        size: NotDefinedAnywhere = 3
    def f(x: AlsoNot):
        return x * Config().size
    """
    assert "3.0" in tracer.trace(text).jaxpr


def test_stages_are_told_in_order(tracer: Driver) -> None:
    tracer.trace(MODULE)
    stages = [stage for stage, _ in groupby(each.stage for each in tracer.stages)]
    assert stages == ["execute", "inputs", "trace"]
    assert [each.detail for each in tracer.stages if each.chunk] == [
        "import jax.numpy as jnp",
        "TABLE = jnp.arange(4.0)",
    ]


def test_times_of_all_stages_are_given(tracer: Driver) -> None:
    names = [name for name, seconds in tracer.trace(MODULE).seconds if seconds > 0]
    assert names[0] == "execute"
    assert "trace" in names


def test_warnings_of_reused_statements_stay(tracer: Driver) -> None:
    text = """
    import jax.numpy as jnp
    ONES = jnp.ones(4, "float64")
    def f(x):
        return x * ONES
    """
    first = tracer.trace(text)
    assert [(each.category, each.span.line) for each in first.warnings if each.span] == [
        ("UserWarning", 1)
    ]
    again = tracer.trace(text)
    assert again.executed == 0
    assert again.warnings == first.warnings


def test_a_filter_that_the_file_sets_holds_for_all_that_follows(tracer: Driver) -> None:
    text = """
    import warnings
    warnings.filterwarnings("ignore")
    import jax.numpy as jnp
    ONES = jnp.ones(4, "float64")
    def f(x):
        return x * ONES * jnp.zeros((), "float64")
    """
    assert tracer.trace(text).warnings == ()
    assert tracer.trace(text).warnings == ()


def test_a_sum_too_deep_for_a_tree_is_traced_unobserved(tracer: Driver) -> None:
    terms = " + ".join(["x"] * 2500)
    traced = tracer.trace(f"def f(x):\n    return {terms}\n")
    assert traced.equations == 2499
    assert traced.observations == ()


def test_values_never_outlive_the_classes_that_they_are_of(tracer: Driver) -> None:
    module = """
        class State:
            SIZE = 1

        DEFAULT = State()

        def f(x):
            assert isinstance(DEFAULT, State)
            return x * State.SIZE

        def g(x):
            return x * State.SIZE
        """
    tracer.trace(module, "f")
    for size in range(2, 6):
        tracer.trace(module.replace("SIZE = 1", f"SIZE = {size}"), "g")
    tracer.trace(module, "f")


def test_a_chunk_that_raised_for_a_function_that_does_not_need_it_fails_one_that_does(
    tracer: Driver,
) -> None:
    text = """
    from jax.numpy import not_there
    def f(x):
        return x
    def g(x):
        return not_there(x)
    """
    (caveat,) = tracer.trace(text, "f").caveats
    assert caveat.reason.startswith("raised ImportError: “cannot import name 'not_there'")
    assert tracer.fail(text, "g").failure.type == "ImportError"


STATEFUL = """
CFG = {"a": 1.0}
W = CFG["a"]
CFG["a"] = 2.0
def f(x):
    return x * W * CFG["a"]
"""


def test_an_edited_statement_runs_on_the_state_that_it_would_have_seen(tracer: Driver) -> None:
    tracer.trace(STATEFUL)
    edited = tracer.trace(STATEFUL.replace('W = CFG["a"]', 'W = CFG["a"] * 10.0'))
    assert "mul a 10.0" in edited.jaxpr
    assert tracer.trace(STATEFUL).jaxpr.count("1.0") == 1


def test_a_statement_that_moves_runs_in_its_new_place(tracer: Driver) -> None:
    text = "K = 2.0\nD = K * 3.0\ndef f(x):\n    return x * D\n"
    assert "6.0" in tracer.trace(text).jaxpr
    moved = tracer.fail("D = K * 3.0\nK = 2.0\ndef f(x):\n    return x * D\n")
    assert moved.failure.type == "NameError"


def test_what_a_trace_changed_is_made_anew(tracer: Driver) -> None:
    text = """
    import functools
    import jax.numpy as jnp
    SEEN = iter([2.0, 3.0, 4.0])
    @functools.lru_cache
    def table(n):
        return jnp.arange(n) * 1.0
    def f(x):
        return x * next(SEEN) + table(4)
    """
    assert "mul a 2.0" in tracer.trace(text).jaxpr
    again = tracer.trace(text.replace("+ table", "- table"))
    assert "mul a 2.0" in again.jaxpr


def test_a_statement_that_takes_too_long_is_left_out_and_named(tracer: Driver) -> None:
    text = """
    import time
    CFG = {"a": 1.0}
    def wait():
        while True:
            CFG["a"] = 5.0
            time.monotonic()
    wait()
    def f(x):
        return x * CFG["a"]
    """
    request = replace(tracer.request(text), patience=0.2)
    tracer.send(request)
    answer = tracer.answer()
    assert isinstance(answer, Traced)
    assert [caveat.reason for caveat in answer.caveats] == ["was stopped after 0.2 s and skipped"]
    assert "1.0" in answer.jaxpr


def test_a_module_is_found_only_after_the_path_leads_to_it(tracer: Driver) -> None:
    tracer.write("deep/hidden.py", "N = 4.0\n")
    extends = "import os, sys\nsys.path.append(os.path.abspath('deep'))\n"
    imports = "try:\n    from hidden import N\nexcept ImportError:\n    N = 2.0\n"
    function = "def f(x):\n    return x * N\n"
    assert "4.0" in tracer.trace(extends + imports + function).jaxpr
    assert "2.0" in tracer.trace(imports + extends + function).jaxpr


def test_a_statement_that_is_gone_leaves_nothing_behind(tracer: Driver) -> None:
    tracer.write("shared.py", "SEEN = []\n")
    text = (
        "import shared\nshared.SEEN.append(1)\ndef f(x):\n    return x * (len(shared.SEEN) + 2.0)\n"
    )
    assert "3.0" in tracer.trace(text).jaxpr
    assert "2.0" in tracer.trace(text.replace("shared.SEEN.append(1)\n", "")).jaxpr
