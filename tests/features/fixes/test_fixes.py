"""Fixes of findings: each is what a person would have written, was proved to help, and what is not
proved is not offered.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import jax
import pytest
import pytest_asyncio

from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.named_function import compiled_function
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.rules import RULES, file_of
from jaxsight.rules.fixing.context import applied
from jaxsight.session import Session
from jaxsight.source.text import Position, Range
from tests.features.fixes.programs import CASES, HEAD, LEFT, ON_A_CPU, ON_AN_H100, Case
from tests.features.rendering import without_hints
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[2] / "fixtures"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    settings = {**QUIET, "python": sys.executable, "target": "cpu", "select": ["ALL"]}
    session.configure([str(ROOT)], settings)
    yield session
    await session.aclose()


async def fixes(session: Session, name: str, text: str, code: str) -> list[Fix]:
    """The fixes of a code in a text, which must have such a finding."""
    path = str(ROOT / f"{name}.py")
    session.open(path, text)
    found = (await session.report(path, kernels=True)).reported
    assert code in {finding.code for finding in found}, [finding.message for finding in found]
    proved = await session.fixes(path)
    session.close(path)
    return [fix for fix in proved if fix.finding.code == code]


def without_seconds(title: str) -> str:
    """A title without what depends on this machine's speed and on what a CPU launches."""
    title = re.sub(r"(kernels|launches|temp|memory traffic|compile) [^,)]*(, )?", "", title)
    title = re.sub(r" on cpu(?!:)", "", title)
    return title.replace(" ()", "").replace(", )", ")")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, marks=[pytest.mark.slow] if case.code in ("JX101", "JX102", "JX209") else []
        )
        for case in CASES
    ],
    ids=lambda case: f"{case.code} {case.title[:30]}",
)
async def test_a_finding_is_fixed(case: Case, session: Session) -> None:
    text = case.before
    for _ in range(3):  # two findings of one kind are fixed one after the other
        found = await fixes(session, "fixed", text, case.code) if text != case.after else []
        if not found:
            break
        assert without_seconds(found[0].title) == case.title
        assert found[0].safe is case.safe or "kernels" in found[0].title
        text = applied(text, found[0].edits)
        if text == case.after:
            break
    assert text == case.after


@pytest.mark.parametrize("reason", LEFT)
async def test_nothing_is_offered_where(reason: str, session: Session) -> None:
    code, text = LEFT[reason]
    assert await fixes(session, "left", text, code) == []


SAMPLES = """\
SAMPLES = np.random.default_rng(0).normal(size=100_000).astype("float32")
"""
OPTION = '{"xla_disable_hlo_passes": "constant_folding"}'
DECORATORS = {
    "@jax.jit": f"@partial(jax.jit, compiler_options={OPTION})",
    "@partial(jax.jit, donate_argnums=())": f"@partial(jax.jit, donate_argnums=(), compiler_options={OPTION})",
    '@partial(jax.jit, compiler_options={"xla_cpu_enable_fast_math": False})': (
        '@partial(jax.jit, compiler_options={"xla_cpu_enable_fast_math": False, ' + OPTION[1:] + ")"
    ),
}
"""Forms of `jax.jit`, and what they become."""


def jitted(decorator: str, name: str) -> str:
    """A function whose sort of a constant XLA would fold."""
    head = "Example inputs:\n        x: f32[100000]"
    body = (
        f'    """\n    {head}\n    """\n    table = SAMPLES[::-1]\n    return x - jnp.sort(table)\n'
    )
    return f"\n\n{decorator}\ndef {name}(x):\n{body}"


@pytest.mark.slow
async def test_folding_is_kept_from_xla_at_the_jit_that_the_user_wrote(session: Session) -> None:
    text = "from functools import partial\n\n" + HEAD + SAMPLES
    text += "".join(jitted(each, f"f{index}") for index, each in enumerate(DECORATORS))
    offered = await fixes(session, "unfolded", text, "JX102")
    title = "Compute it on every call, by `compiler_options`"
    assert [without_seconds(fix.title) for fix in offered] == [title] * len(DECORATORS)
    # On some machines the folded program has fewer kernels, which makes the fix cost one.
    assert all(fix.safe or "kernels 1 → 2" in fix.title for fix in offered)
    changed = applied(text, list(dict.fromkeys(edit for fix in offered for edit in fix.edits)))
    lines = [line for line in changed.splitlines() if line.startswith("@")]
    assert lines == list(DECORATORS.values())
    path = str(ROOT / "unfolded.py")
    session.open(path, changed)
    left = {finding.code for finding in (await session.report(path, kernels=True)).reported}
    _, result = await compiled_function(session.engine, path, "f0", complete=True)
    session.close(path)
    assert "JX102" not in left
    assert isinstance(result, LocatedFigures), result


@pytest.mark.slow
async def test_without_a_jit_no_barrier_is_offered_for_folding(session: Session) -> None:
    text = HEAD + SAMPLES + jitted("", "g")
    titles = [fix.title for fix in await fixes(session, "barrier", text, "JX102")]
    assert not [title for title in titles if "barrier" in title or "compiler_options" in title]


ROOT_OF = next(case for case in CASES if case.code == "JX405").before
ANYWHERE = Range(Position(0, 0), Position(100, 0))


async def test_a_fix_is_a_code_action_once_it_is_proved(session: Session) -> None:
    path = str(ROOT / "actions.py")
    session.open(path, ROOT_OF)
    session.start_fixes(path, await session.report(path))
    actions = []
    for _ in range(60):  # each time it waits for a moment
        actions = [a for a in await session.actions(path, ANYWHERE) if a.kind == "quickfix"]
        if actions:
            break
    (action,) = actions
    assert action.finding is not None
    assert action.finding.code == "JX405"
    elsewhere = Range(Position(0, 0), Position(0, 0))
    assert [a for a in await session.actions(path, elsewhere) if a.kind == "quickfix"] == []
    session.change(path, ROOT_OF.replace("x > 0", "x > 1"))
    assert [a for a in await session.actions(path, ANYWHERE) if a.kind == "quickfix"] == []
    session.close(path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.skipif(jax.__version_info__[:2] != (0, 12), reason="the figures are of JAX 0.12")
@pytest.mark.parametrize(
    ("target", "expected"), [("cuda:h100", ON_AN_H100), ("cpu", ON_A_CPU)], ids=["h100", "cpu"]
)
async def test_examples_of_pages_are_fixed_for_a_target(
    target: str, expected: dict[str, str]
) -> None:
    session = session_without_spare()
    settings = {"python": sys.executable, "target": target, "select": ["JX"], **QUIET}
    session.configure([str(ROOT)], settings)
    titles = {}
    for code in expected:
        page = file_of(RULES[code]).read_text(encoding="utf-8")
        text = page.partition("## Example")[2].partition("```python\n")[2].partition("```")[0]
        found = await fixes(session, "page", text, code)
        titles[code] = re.sub(r", compile [^,)]* s(?= on)", "", found[0].title) if found else ""
    await session.aclose()
    assert titles == expected


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
async def test_a_loop_that_takes_many_times_as_long_on_a_gpu_is_no_fix() -> None:
    session = session_without_spare()
    settings = {"python": sys.executable, "target": "cuda:h100", "select": ["JX209"], **QUIET}
    session.configure([str(ROOT)], settings)
    (text,) = [case.before for case in CASES if case.code == "JX209"]
    fused = text.replace("jnp.sort(jnp.cumsum(jnp.sort(x)))", "jnp.sin(x)")
    fused = fused.replace("range(3, 40)", "range(3, 300)")
    assert fused != text  # 4 launches; a loop has 597
    path = str(ROOT / "launches.py")
    session.open(path, fused)
    codes = {finding.code for finding in (await session.report(path, kernels=True)).reported}
    offered = await session.fixes(path)
    await session.aclose()
    assert codes == {"JX209"}
    assert offered == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.skipif(jax.__version_info__[:2] != (0, 12), reason="the figures are of JAX 0.12")
async def test_a_sum_over_a_tiny_axis_is_written_out_for_a_gpu() -> None:
    session = session_without_spare()
    settings = {"python": sys.executable, "target": "cuda:h100", "select": ["JX201"], **QUIET}
    session.configure([str(ROOT)], settings)
    file = ROOT / "kernels" / "notebook_h100.py"
    text = without_hints(file.read_text(encoding="utf-8"))
    session.open(str(file), text)
    titles = {fix.title: applied(text, fix.edits) for fix in await session.fixes(str(file))}
    await session.aclose()
    title = "Write out `sum` over the axis of size 2 (kernels 2 → 1, temp 512 KiB → 0 B on h100)"
    assert list(titles) == [title], "of the other reductions no fix saves anything"
    assert (
        "    terms = kvm * x\n    return x * 2 + (terms[:, 0:1] + terms[:, 1:2])\n" in titles[title]
    )
