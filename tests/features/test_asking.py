"""Answers for agents: what they have, and that they are never longer than asked."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from jaxsight.cli.output.printing import as_json_line, versioned
from jaxsight.features.asking.asking import AgentQuestion, ComparedProgram, Topic
from jaxsight.features.asking.parts import LEAST_BUDGET, AgentAnswer
from tests.cli.published import validate
from tests.sessions import session_without_spare

MODEL = '''\
import jax
import jax.numpy as jnp


def ordered(x):
    """Sort, and compare.

    Example inputs:
        x: f32[4096, 16]
    """
    rows = jnp.sort(x)
    return rows * 2 - x


def mixed(x, n):
    """
    Example inputs:
        x: f32[8]
        n: f32[]
    """
    if n > 0:
        return x
    return -x


def product(a, b):
    scaled = a / jnp.linalg.norm(a)
    return scaled @ b


def helper(a):
    return a.T


def uses(a):
    """
    Example inputs:
        a: f32[3, B]
        where B=4
    """
    return helper(a) @ a


def train(steps, x):
    for _ in range(steps):
        x = jax.jit(lambda v: v * 2)(x)
    return x
'''

MANY = (
    "import jax.numpy as jnp\n\n\ndef f(x):\n"
    + '    """\n    Example inputs:\n        x: f32[4]\n    """\n'
)
MANY += (
    "".join(f"    y{i} = jnp.sort(x) * {i}.0\n    x = x + y{i}\n" for i in range(24))
    + "    return x\n"
)

RAISES = """\
import warnings
import jax.numpy as jnp

def at_import():
    raise OSError("SAID at import")

TABLE = at_import()

""" + "".join(
    f'''
def {name}(x):
    """
    Example inputs:
        x{" = at_import()" if name == "input" else ": f32[4]"}
    """
    {body}
    return x + TABLE
'''
    for name, body in {
        "message": "raise ValueError('SAID')",
        "sentence": "raise ValueError('it fails. SAID next')",
        "line": "raise ValueError('it fails” and “\\\\nSAID below')",
        "long": "raise ValueError('SAID and more ' * 20)",
        "note": "e = ValueError('it fails'); e.add_note('” SAID in a note'); raise e",
        "named": "raise type('SAID: more', (Exception,), {})('x')",
        "group": "raise ExceptionGroup('it fails', [ValueError('SAID in a group')])",
        "index": "raise IndexError('tuple index out of range. SAID')",
        "warned": "warnings.warn('x is deprecated. Use SAID', DeprecationWarning)",
        "input": "pass",
        "missing": "pass",
    }.items()
)
"""Whatever an agent reads of a workspace's exceptions and warnings has the word SAID."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """Asks a question about the model, or about another text."""
    root = tmp_path_factory.mktemp("asked")
    paths = {text: root / f"model{number}.py" for number, text in enumerate((MODEL, MANY, RAISES))}
    for text, path in paths.items():
        path.write_text(text)
    session = session_without_spare()
    session.configure([str(root)], {"python": sys.executable, "target": "cpu"})

    async def ask(topic: Topic, text: str = MODEL, **question: Any) -> AgentAnswer:
        path = str(paths[text])
        session.open(path, text, in_background=False)
        return await session.ask(AgentQuestion(path, topic=topic, name="model.py:f", **question))

    async def compared(function: str) -> ComparedProgram:
        return await session.compared(str(paths[MODEL]), function, None, "HEAD")

    ask.compared = compared
    yield ask
    await session.aclose()


def record(answer: AgentAnswer, budget: int = 100_000) -> dict[str, Any]:
    """The answer as JSON, as the command prints it."""
    printed = answer.record(budget, lambda value: len(as_json_line(versioned(value))))
    validate("ask", versioned(printed))
    return printed


@pytest.mark.asyncio(loop_scope="module")
async def test_an_overview_has_inputs_kernels_findings_and_edits(asked: Any) -> None:
    shown = record(await asked(Topic.OVERVIEW, function="ordered"))
    assert shown["inputs"]["origin"] == "docstring"
    assert shown["summary"].startswith("2 kernels · 2 launches")
    assert [each["lines"] for each in shown["kernels"]] == [[12], [11]]
    assert shown["findings"] == []
    assert shown["parameters"] == [{"name": "x", "value": "f32[4096,16]"}]
    assert shown["commands"][-1].startswith("jaxsight ask model.py:f --question kernels|why|memory")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_fix_is_an_edit_and_lines_of_text(asked: Any) -> None:
    answer = await asked(Topic.FIX, function="mixed")
    [finding] = record(answer)["findings"]
    assert finding["fix"]["applicability"] == "safe"
    [edit] = finding["fix"]["edits"]
    assert edit["location"]["row"] == 21
    assert edit["content"] == "return jnp.where(n > 0, x, -x)"
    text = answer.text(2000)
    assert "21-     if n > 0:" in text
    assert "21+     return jnp.where(n > 0, x, -x)" in text


@pytest.mark.asyncio(loop_scope="module")
async def test_a_line_has_the_values_of_its_expressions(asked: Any) -> None:
    line = MODEL.splitlines().index("    return helper(a) @ a")
    shown = record(await asked(Topic.SHAPES, line=line))
    assert shown["function"] == "uses"
    values = {each["name"]: each["value"] for each in shown["values"]}
    assert values == {"helper(a) @ a": "f32[B,B]", "helper(a)": "f32[B,3]", "a": "f32[3,B]"}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_line_of_a_called_function_has_the_values_of_the_call(asked: Any) -> None:
    line = MODEL.splitlines().index("    return a.T")
    text = (await asked(Topic.SHAPES, line=line)).text(2000)
    assert "a.T: f32[4,3]" in text


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_is_told_at_its_line_whatever_is_asked(asked: Any) -> None:
    for topic in (Topic.SHAPES, Topic.MEMORY):
        shown = record(await asked(topic, function="mixed"))
        [finding] = shown["findings"]
        assert (finding["code"], finding["row"]) == ("JX401", 21)
        assert "jnp.where" in finding["help"]
        assert "jaxsight repro" in shown["try"][-1]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", re.findall(r"^def (\w+)\(x\)", RAISES, re.MULTILINE))
async def test_words_of_a_workspace_are_quoted(name: str, asked: Any) -> None:
    text = (await asked(Topic.OVERVIEW, RAISES, function=name)).text(4000)
    assert "SAID" in text or "tuple index" in text
    assert "SAID" not in re.sub("“[^“”]*”", "", text), text


@pytest.mark.asyncio(loop_scope="module")
async def test_a_function_without_inputs_gets_an_edit_that_writes_them(asked: Any) -> None:
    shown = record(await asked(Topic.OVERVIEW, function="product"))
    assert shown["inputs"]["assumed"]
    [edit] = shown["edit"]
    assert "Example inputs:" in edit["edits"][0]["content"]


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_text_alone_says_needs_no_inputs(asked: Any) -> None:
    shown = record(await asked(Topic.WHY, function="train"))
    assert [each["code"] for each in shown["findings"]] == ["JX303"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_has_all_functions_and_findings(asked: Any) -> None:
    shown = record(await asked(Topic.FIX))
    assert {each["function"] for each in shown["functions"]} >= {"ordered", "mixed", "uses"}
    assert shown["findings"][0]["code"] == "JX401"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_line_in_no_function_is_answered_with_the_file(asked: Any) -> None:
    shown = record(await asked(Topic.SHAPES, line=0))
    assert shown["problem"] == "line 1 is in no function; this is the whole file"
    assert "ordered" in {each["function"] for each in shown["functions"]}


@pytest.mark.asyncio(loop_scope="module")
async def test_memory_and_boundaries_name_lines(asked: Any) -> None:
    shown = record(await asked(Topic.MEMORY, function="ordered"))
    amounts = {each["what"]: each["bytes"] for each in shown["memory"]}
    assert amounts["arguments"] == amounts["outputs"] == 4096 * 16 * 4
    largest = shown["temporaries"][0]
    assert (largest["lines"], largest["read_lines"]) == ([11], [12])
    assert largest["bytes"] == 4096 * 16 * 4
    why = record(await asked(Topic.WHY, function="ordered"))
    assert {"kernel": 1, "row": 11, "reason": "sort"} in why["boundaries"]


@pytest.mark.asyncio(loop_scope="module")
async def test_no_answer_is_longer_than_its_budget(asked: Any) -> None:
    for topic in (Topic.KERNELS, Topic.SHAPES, Topic.WHY):
        answer = await asked(topic, MANY, function="f")
        whole = record(answer)
        assert whole["left_out"] == {}
        for budget in (LEAST_BUDGET, 700, 1500, 4000):
            text = answer.text(budget)
            assert len(text) <= budget
            cut = answer.record(budget, lambda value: len(as_json_line(versioned(value))))
            is_least = all(not rows for rows in cut.values() if isinstance(rows, list))
            assert len(as_json_line(versioned(cut))) <= budget or is_least
            for name, left in cut["left_out"].items():
                assert len(cut[name]) + left == len(whole[name])


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_not_there_is_said(asked: Any) -> None:
    with pytest.raises(LookupError, match="no function missing"):
        await asked(Topic.OVERVIEW, function="missing")
    with pytest.raises(LookupError, match="the file has"):
        await asked(Topic.OVERVIEW, line=1000)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_comparison_names_what_differs_at_its_line(asked: Any) -> None:
    before = await asked.compared("ordered")
    same = record(await asked(Topic.COMPARE, function="ordered", before=before))
    assert same["differences"] == []
    unlike = await asked.compared("uses")
    shown = record(await asked(Topic.COMPARE, function="ordered", before=unlike))
    kernels = [each for each in shown["differences"] if each["aspect"] == "kernels"]
    assert any(each["row"] == 11 and "sort" in each["words"] for each in kernels)
    missing = await asked.compared("missing")
    shown = record(await asked(Topic.COMPARE, function="ordered", before=missing))
    assert shown["problem"].startswith("not compared with HEAD: ")
    assert "differences" not in shown
