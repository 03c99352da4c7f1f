"""Files that code reads are watched like its sources, and so are modules that are not there yet."""

import os

import numpy as np
import pytest

from tests.tracer.isolation.driver import Driver, paths

READS = """
import json
from pathlib import Path
CONFIG = json.loads(Path("config.json").read_text())
def f(x):
    return x * CONFIG["scale"]
"""


def test_a_file_that_a_module_reads_is_named_and_read_again_when_it_changes(
    tracer: Driver,
) -> None:
    path = tracer.write("config.json", '{"scale": 3.0}')
    answer = tracer.trace(READS)
    assert paths(answer) == (str(path),)
    again = tracer.trace(READS)
    assert paths(again) == (str(path),)
    assert again.executed == 0
    path.write_text('{"scale": 4.5}')
    assert "4.5" in tracer.trace(READS).jaxpr


def test_an_array_that_a_module_loads_is_watched(tracer: Driver) -> None:
    text = """
    import numpy as np
    TABLE = np.load("table.npy")
    def f(x):
        return x * float(TABLE.sum())
    """
    path = tracer.project / "table.npy"
    np.save(path, np.ones(3))
    answer = tracer.trace(text)
    assert "3.0" in answer.jaxpr
    assert paths(answer) == (str(path),)
    np.save(path, np.ones(5))
    assert "5.0" in tracer.trace(text).jaxpr


def test_a_file_that_an_imported_module_reads_is_watched_for_all_that_import_it(
    tracer: Driver,
) -> None:
    helper = tracer.write("helper.py", "from pathlib import Path\nN = float(Path('n').read_text())")
    data = tracer.write("n", "3")
    text = "import helper\ndef f(x):\n    return x * helper.N\n"
    tracer.trace(text, file="first.py")
    answer = tracer.trace(text, file="second.py")
    assert paths(answer) == (str(helper), str(data))
    data.write_text("45")
    assert "45.0" in tracer.trace(text, file="second.py").jaxpr
    assert "45.0" in tracer.trace(text, file="first.py").jaxpr


def test_a_file_that_a_function_reads_while_it_is_traced_is_named(tracer: Driver) -> None:
    path = tracer.write("n", "3")
    text = "def f(x):\n    return x * float(open('n').read())\n"
    assert paths(tracer.trace(text)) == (str(path),)


def test_a_file_that_is_not_there_is_named(tracer: Driver) -> None:
    answer = tracer.fail(READS)
    assert paths(answer) == (str(tracer.project / "config.json"),)
    asks = """
    try:
        N = float(open("n").read())
    except FileNotFoundError:
        N = 2.0
    def f(x):
        return x * N
    """
    assert paths(tracer.trace(asks, file="asks.py")) == (str(tracer.project / "n"),)
    tracer.write("n", "7")
    assert "7.0" in tracer.trace(asks, file="asks.py").jaxpr


def test_files_that_code_writes_itself_and_installed_ones_are_not_named(tracer: Driver) -> None:
    text = """
    import tempfile
    import scipy.special
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("3")
        file.flush()
        with open(file.name) as again:
            N = float(again.read())
    with open("/proc/self/status") as status:
        status.read()
    def f(x):
        return x * N
    """
    assert paths(tracer.trace(text)) == ()
    assert tracer.trace(text).executed == 0


def test_a_file_that_code_is_refused_to_write_is_one_that_it_reads(tracer: Driver) -> None:
    kept = tracer.write("w.txt", "3.0")
    answer = tracer.trace(
        """
        from pathlib import Path
        Path("w.txt").write_text("4.0")
        W = float(Path("w.txt").read_text())
        def f(x):
            return x * W
        """
    )
    assert [each.reason for each in answer.caveats] == ["did not run: it would write `w.txt`"]
    assert str(kept) in paths(answer)


@pytest.mark.parametrize("name", ["helper", "tools.helper"])
@pytest.mark.parametrize(
    "imports",
    ["from {} import N", "try:\n    from {} import N\nexcept ImportError:\n    N = 2.0"],
)
def test_a_module_that_was_missing_is_imported_when_it_appears(
    tracer: Driver, name: str, imports: str
) -> None:
    text = imports.format(name) + "\ndef f(x):\n    return x * N\n"
    first = tracer.ask(text)
    path = tracer.project.joinpath(*name.split(".")).with_suffix(".py")
    names = [each for each, _ in first.files]
    assert any(path == type(path)(each) or type(path)(each) in path.parents for each in names)
    tracer.write(str(path.relative_to(tracer.project)), "N = 7.0\n")
    assert "7.0" in tracer.trace(text).jaxpr


def test_modules_that_libraries_try_are_not_named(tracer: Driver) -> None:
    pytest.importorskip("flax")
    text = "import optax\nimport flax.linen\ndef f(x):\n    return x\n"
    assert paths(tracer.trace(text.replace("return x", "optax, flax\n    return x"))) == ()


def test_import_module_is_followed(tracer: Driver) -> None:
    path = tracer.write("tools/helper.py", "N = 3.0\n")
    text = """
    import importlib
    helper = importlib.import_module("tools.helper")
    def f(x):
        return x * helper.N
    """
    answer = tracer.trace(text)
    assert str(path) in paths(answer)
    tracer.write("tools/helper.py", "N = 4.5\n")
    os.utime(path, (1, 1))
    assert "4.5" in tracer.trace(text).jaxpr
    late = "import importlib\ndef f(x):\n    return x * importlib.import_module('tools.helper').N\n"
    assert str(path) in paths(tracer.trace(late, file="late.py"))
    tracer.write("tools/helper.py", "N = 6.5\n")
    assert "6.5" in tracer.trace(late, file="late.py").jaxpr


def test_modules_of_a_folder_beside_one_file_are_not_those_of_another(tracer: Driver) -> None:
    text = "from tools.helper import N\ndef f(x):\n    return x * N\n"
    tracer.write("a/tools/helper.py", "N = 3.0\n")
    tracer.write("b/tools/helper.py", "N = 4.5\n")
    for _ in range(2):
        assert "3.0" in tracer.trace(text, file="a/main.py").jaxpr
        assert "4.5" in tracer.trace(text, file="b/main.py").jaxpr
        failed = tracer.fail(text, file="c/main.py")
        assert failed.failure.type == "ModuleNotFoundError"
