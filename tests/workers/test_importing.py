"""A file imported whole: by its own name, from where Python would find it, and gone with all that
it started.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from jaxsight.wire.messages.inputs import Argument, ArraySpec
from jaxsight.wire.messages.replies import Failed, Imported
from jaxsight.wire.messages.requests import Import, Trace
from jaxsight.workers.importing import import_whole, line_of
from jaxsight.workers.limits import Limits
from jaxsight.workers.results import Died, Reason

FUNCTION = "\n\ndef f(x):\n    return x * SCALE\n"


Lines = tuple[tuple[int, int], ...]


def request(
    root: Path,
    file: str,
    module: str,
    *,
    lines: Lines = (),
    deadline: float = 60.0,
) -> Import:
    """An import of a file below `root`, and its `f(x: f32[3])`."""
    path = str(root / file)
    x = Argument("x", ArraySpec("float32", (3,)))
    function = Trace(0, path, module, str(root), (), function="f", arguments=(x,))
    return Import(1, path, module, str(root), (function,), lines, deadline)


async def imported(asked: Import) -> Imported | Failed | Died:
    return await import_whole(sys.executable, asked, limits=Limits(), variables={})


async def program(root: Path, file: str, module: str, lines: Lines = ()) -> str:
    """The program of the file's `f`."""
    reply = await imported(request(root, file, module, lines=lines))
    assert isinstance(reply, Imported), reply
    [made] = reply.functions
    assert made.failure is None, made.failure
    return made.program


async def test_a_file_is_imported_with_its_packages_first(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "pkg" / "sub"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("FACTOR = 3.0\n")
    (folder / "__init__.py").write_text("")
    (folder / "mod.py").write_text("from .. import FACTOR\nSCALE = FACTOR + 1" + FUNCTION)
    assert "mul a 4.0" in await program(tmp_path, "src/pkg/sub/mod.py", "pkg.sub.mod")


async def test_what_a_file_sets_before_it_imports_jax_has_its_effect(tmp_path: Path) -> None:
    text = "import os\nos.environ['JAX_ENABLE_X64'] = '1'\nimport jax.numpy as jnp\n"
    (tmp_path / "model.py").write_text(f"{text}SCALE = jnp.arange(3.0){FUNCTION}")
    assert "f64[3]" in await program(tmp_path, "model.py", "model")


async def test_a_file_with_the_name_of_a_module_of_python_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("SCALE = 6.0" + FUNCTION)
    assert "mul a 6.0" in await program(tmp_path, "json.py", "json")


async def test_only_some_statements_run_where_lines_are_named(tmp_path: Path) -> None:
    text = '"""Doc."""\nfrom __future__ import annotations\nSCALE = 1.0\nSCALE = 2.0\nSCALE = 3.0'
    (tmp_path / "model.py").write_text(text + FUNCTION)
    every = await program(tmp_path, "model.py", "model")
    some = await program(tmp_path, "model.py", "model", ((3, 4), (7, 8)))
    assert "mul a 3.0" in every
    assert "mul a 2.0" in some


async def test_arrays_that_differ_make_programs_that_differ(tmp_path: Path) -> None:
    made = []
    for name, value in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        text = f"import numpy as np\nSCALE = np.full(3, {value}){FUNCTION}"
        (tmp_path / f"{name}.py").write_text(text)
        made.append(await program(tmp_path, f"{name}.py", name))
    assert made[0] == made[1] != made[2]


async def test_an_import_that_raises_says_where(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def load():\n    raise ValueError('no data')\n\nload()\n")
    reply = await imported(request(tmp_path, "model.py", "model"))
    assert isinstance(reply, Failed)
    assert (reply.failure.type, reply.failure.message) == ("ValueError", "no data")
    assert reply.failure.frames[0].line == 4


@pytest.mark.parametrize("statement", ["import sys; sys.exit(4)", "raise KeyboardInterrupt"])
async def test_an_import_that_ends_python_is_a_failure(tmp_path: Path, statement: str) -> None:
    (tmp_path / "model.py").write_text(statement)
    reply = await imported(request(tmp_path, "model.py", "model"))
    assert isinstance(reply, Failed)


async def test_an_import_that_ends_the_process_is_a_death(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import os\nos._exit(5)\n")
    reply = await imported(request(tmp_path, "model.py", "model"))
    assert isinstance(reply, Died)
    assert (reply.death.reason, reply.death.code) == (Reason.EXITED, 5)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no guardian on Windows")
async def test_an_import_that_hangs_ends_with_its_children_and_says_where(tmp_path: Path) -> None:
    text = (
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', 'while True: pass', {str(tmp_path)!r}])\n"
        "while True:\n"
        "    pass\n"
    )
    (tmp_path / "model.py").write_text(text)
    asked = request(tmp_path, "model.py", "model", deadline=1.0)
    reply = await imported(asked)
    assert isinstance(reply, Died)
    assert (reply.death.reason, reply.death.limit) == (Reason.TIMEOUT, 1.0)
    assert line_of(reply.death, asked.file) in (3, 4)
    running = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in running if command[-1:] == [str(tmp_path)]]


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="there is no fork on Windows")
async def test_a_fork_of_the_file_does_not_answer_for_it(tmp_path: Path) -> None:
    text = "import os\nSCALE = 1.0\nif os.fork() == 0:\n    SCALE = 2.0\nelse:\n    os.wait()"
    (tmp_path / "model.py").write_text(text + FUNCTION)
    assert "mul a 1.0" in await program(tmp_path, "model.py", "model")


async def test_an_import_changes_nothing_and_says_what_it_would(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import shutil\nshutil.rmtree('kept')\n")
    (tmp_path / "kept").mkdir()
    reply = await imported(request(tmp_path, "model.py", "model"))
    assert isinstance(reply, Failed)
    assert reply.failure.message == "refused: it would delete `kept`"
    assert (tmp_path / "kept").is_dir()
