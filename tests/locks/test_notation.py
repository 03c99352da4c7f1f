"""Facts are written as one line and read again, with what the user wrote beside them."""

from __future__ import annotations

import pytest

from jaxsight.hlo.metadata import digest
from jaxsight.locks.facts import (
    CollectiveFact,
    ConstantFact,
    DtypeFact,
    KernelFact,
    LoopFact,
    ProgramFacts,
    exact,
)
from jaxsight.locks.notation import (
    LockedFunction,
    LockError,
    LockSection,
    ProjectLock,
    line_of,
    parse,
    read_line,
)

FACTS = ProgramFacts(
    kernels=(
        KernelFact("layout change", 4096, line=3),
        *[KernelFact("matmul", 1000)] * 2,
        KernelFact("XLA's choice", 4),
    ),
    launches=26,
    temporaries=-1,
    arguments=3 * 2**20,
    traffic=1536 * 1024,
    moved=64,
    collectives=(
        CollectiveFact("all-gather", 64, ("data", "model"), 12),
        CollectiveFact("send", 1),
    ),
    constants=(ConstantFact(4096, is_folded=True), ConstantFact(2)),
    loops=(LoopFact(20), LoopFact(None)),
    devices=8,
    equations=12,
    dtypes=(DtypeFact("bf16", 2), DtypeFact("f32", 2**20)),
    inputs="f32[8,128], {'w': f32[4]}",
    results="(f32[], i32[2])",
    program="0123456789ab",
)
LINE = (
    "src/model.py:loss  kernels=4[layout-change:4KiB matmul:1000B*2 XLA's-choice:4B]  launches=26"
    "  temp=?  args=3MiB  traffic=1536KiB  moved=64B  devices=8  equations=12"
    "  collectives=2[all-gather:64B:data,model:12 send:1B:]  constants=4098B[4KiB:folded 2B]"
    "  loops=2[20 ?]  dtypes=2[bf16:2B f32:1MiB]  inputs=f32[8,128], {'w': f32[4]}  results=(f32[], i32[2])"
    "  program=0123456789ab"
)
CPU = LockSection("cpu on linux x86_64", "0.12.0")


def test_a_function_is_one_line_that_is_read_again() -> None:
    assert line_of("src/model.py:loss", LockedFunction(FACTS)) == LINE
    assert read_line(LINE) == ("src/model.py:loss", LockedFunction(FACTS))


@pytest.mark.parametrize(
    "name", ["a  b.py:f", "[x].py:f", "#.py:f", "a.py:f[two  spaces]", "é.py:f"]
)
def test_any_name_is_read_again(name: str) -> None:
    lock = ProjectLock()
    lock.put(CPU, name, FACTS)
    assert list(parse(lock.text()).sections[CPU]) == [name]


def test_tolerances_are_kept_when_a_line_is_written_again() -> None:
    line = LINE.replace("args=3MiB", "args=3MiB~5%").replace(":4B]  l", ":4B]~1  l")
    lock = ProjectLock()
    name, locked = read_line(line)
    lock.sections[CPU] = {name: locked}
    lock.put(CPU, name, ProgramFacts(kernels=FACTS.kernels[:1], arguments=2**20))
    written = lock.text().splitlines()[-1]
    assert "kernels=1[layout-change:4KiB]~1  launches=0  temp=0B  args=1MiB~5%" in written


def test_sections_and_functions_are_in_order_and_others_stay() -> None:
    lock = ProjectLock()
    for section in (LockSection("cuda:h100", "0.12.0"), CPU):
        lock.put(section, "b.py:f", FACTS)
        lock.put(section, "a.py:f", FACTS)
    again = parse(lock.text())
    assert again.text() == lock.text()
    assert list(again.sections) == [CPU, LockSection("cuda:h100", "0.12.0")]
    assert list(again.sections[CPU]) == ["a.py:f", "b.py:f"]


FIRST = "# jaxsight.lock, format 1: \n[cpu, jax 0.12.0]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cpu, jax 0.12.0]\n", "line 1: not a lock of format 1"),
        ("# jaxsight.lock, format 2: \n", "line 1: not a lock of format 1"),
        ("# jaxsight.lock, format 1: \na.py:f  kernels=1[]\n", "line 2: a function before"),
        (f"{FIRST}a.py:f  what=1\n", "line 3: invalid field 'what=1'"),
        (f"{FIRST}a.py:f  temp=many\n", "line 3: invalid number 'many'"),
        (f"{FIRST}a.py:f  temp=1~x%\n", "line 3: could not convert"),
        (f"{FIRST}a.py:f  kernels=1[output:4B*1000000000]\n", "line 3: more than 100000 items"),
        (f"{FIRST}a.py:f  collectives=1[gossip:4B:]\n", "line 3: unknown collective 'gossip'"),
        (f"{FIRST}a.py:f  results\n", "line 3: expected key=value"),
        (f'{FIRST}"a.py\n', "line 3:"),
    ],
)
def test_a_lock_that_is_none_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(LockError, match=message.replace("[", r"\[")):
        parse(text)


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0B"), (1023, "1023B"), (1536, "1536B"), (2**31, "2GiB"), (-1, "?")]
)
def test_amounts_are_exact(amount: int, text: str) -> None:
    assert exact(amount) == text


HLO = """\
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY %main.5 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0), metadata={op_name="x"}
  ROOT %sin.2 = f32[8]{0} sine(%x.1), metadata={op_name="jit(f)/eq[0]/sin"}, backend_config={"a":1}
}
"""


def test_a_digest_does_not_depend_on_names_and_places() -> None:
    renamed = (
        HLO.replace("jit_f", "jit_g")
        .replace("x.1", "y.7")
        .replace("sin.2", "sine")
        .replace('op_name="jit(f)', 'stack_frame_id=3 op_name="jit(g)')
    )
    assert renamed != HLO
    assert digest(renamed) == digest(HLO)
    for change in (("sine(", "cosine("), ("f32[8]", "f32[9]"), ("is_scheduled=true", "b=1")):
        assert digest(HLO.replace(*change)) != digest(HLO)
