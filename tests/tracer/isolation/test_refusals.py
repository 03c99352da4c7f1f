"""Nothing outside of the process changes in a call that nobody asked for."""

from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.wire.messages.replies import Failed, Traced
from tests.tracer.isolation.driver import Answer, Driver

EFFECTS = {
    "a file": ("open('name', 'w').write('x')", "write `name`"),
    "a descriptor": ("os.open('name', os.O_WRONLY | os.O_CREAT)", "write `name`"),
    "an array": ("np.save('name', np.ones(3))", "write `name.npy`"),
    "a path": ("pathlib.Path('name').write_text('x')", "write `name`"),
    "a folder": ("os.makedirs('name')", "make `name`"),
    "a removed file": ("os.remove('kept.txt')", "delete `kept.txt`"),
    "a removed folder": ("shutil.rmtree('kept')", "delete `kept`"),
    "a renamed file": ("os.replace('kept.txt', 'name')", "rename `name`"),
    "a process": ("subprocess.run(['touch', 'name'])", "start or end a process"),
    "a shell": ("os.system('touch name')", "start or end a process"),
    "a connection": ("socket.create_connection(('127.0.0.1', 9))", "use the network"),
}
HEAD = "import os, pathlib, shutil, socket, subprocess\nimport numpy as np\n"


def unasked(tracer: Driver, text: str) -> Answer:
    tracer.send(replace(tracer.request(text), unasked=True))
    return tracer.answer()


def contents(project: Path) -> list[str]:
    return sorted(str(path.relative_to(project)) for path in project.rglob("*"))


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_is_refused_with_inputs_that_nobody_wrote(tracer: Driver, effect: str) -> None:
    statement, what = EFFECTS[effect]
    tracer.write("kept.txt", "")
    tracer.write("kept/inner.txt", "")
    before = contents(tracer.project)
    answer = unasked(tracer, f"{HEAD}def f(x):\n    {statement}\n    return x\n")
    assert isinstance(answer, Failed)
    assert answer.failure.message == f"refused: it would {what}"
    assert contents(tracer.project) == before


def test_code_may_do_without_a_refused_effect(tracer: Driver) -> None:
    answer = unasked(
        tracer,
        """
        import os
        def f(x):
            try:
                os.mkdir("name")
            except OSError:
                pass
            return x + 1
        """,
    )
    assert isinstance(answer, Traced)


def test_reading_and_importing_are_no_such_effects(tracer: Driver) -> None:
    tracer.write("scale.txt", "3.0")
    tracer.write("helper.py", "FACTOR = 2")
    answer = unasked(
        tracer,
        """
        def f(x):
            import helper
            return x * helper.FACTOR * float(open("scale.txt").read())
        """,
    )
    assert isinstance(answer, Traced)


def test_inputs_that_the_user_wrote_have_no_effects_either(tracer: Driver) -> None:
    answer = tracer.ask("def f(x):\n    open('name', 'w').close()\n    return x\n")
    assert isinstance(answer, Failed)
    assert answer.failure.message == "refused: it would write `name`"
    assert not (tracer.project / "name").exists()


def test_a_statement_that_is_refused_is_a_caveat_and_what_it_makes_unknown(tracer: Driver) -> None:
    tracer.write("kept/inner.txt", "")
    tracer.write(
        "helper.py",
        "import os, shutil\ndef fresh(path):\n    shutil.rmtree(path, ignore_errors=True)\n"
        "    os.makedirs(path)\n    return path\n",
    )
    text = """
        from helper import fresh
        OUT = fresh("kept")
        def f(x):
            return x + 1
        def g(x):
            return x + len(OUT)
        """
    answer = tracer.trace(text)
    assert [each.reason for each in answer.caveats] == ["did not run: it would delete `kept`"]
    failed = tracer.ask(text, "g")
    assert isinstance(failed, Failed)
    assert failed.failure.message == "refused: it would delete `kept`"
    assert (tracer.project / "kept" / "inner.txt").exists()


@pytest.mark.parametrize(
    ("statement", "caveats"),
    [
        ("os.makedirs('out')", []),
        ("pathlib.Path('out/deep').mkdir(parents=True)", []),
        ("DONE = os.makedirs('out')", ["did not run: it would make `out`"]),
        (
            "def make():\n    os.mkdir('out')\n    CFG['a'] = 1\nmake()",
            ["did not run: it would make `out`"],
        ),
        ("np.save('out', np.ones(3))", ["did not run: it would write `out.npy`"]),
        (
            "with open('out.txt', 'w') as out:\n    CFG['a'] = 1",
            ["did not run: it would write `out.txt`"],
        ),
        ("shutil.rmtree('kept')", ["did not run: it would delete `kept`"]),
    ],
)
def test_a_folder_that_is_not_made_is_no_caveat(
    tracer: Driver, statement: str, caveats: list[str]
) -> None:
    tracer.write("kept/inner.txt", "")
    before = contents(tracer.project)
    answer = tracer.trace(f"{HEAD}CFG = {{}}\n{statement}\ndef f(x):\n    return x + 1\n")
    assert [each.reason for each in answer.caveats] == caveats
    assert contents(tracer.project) == before


def test_what_a_module_stores_in_a_temporary_folder_is_read_again(tracer: Driver) -> None:
    answer = tracer.trace(
        """
        import os, tempfile
        import numpy as np
        FILE = os.path.join(tempfile.mkdtemp(), "w.npy")
        np.save(FILE, np.ones(7))
        W = np.load(FILE)
        def f(x):
            return x.sum() + W
        """
    )
    assert not answer.caveats
    assert "f32[7]" in answer.jaxpr


def test_a_module_that_writes_a_log_is_imported(tracer: Driver) -> None:
    tracer.write(
        "helper.py",
        "import logging\nlogging.basicConfig(filename='run.log')\n"
        "HANDLER = logging.FileHandler('x.log')\nFACTOR = 2.0\n",
    )
    answer = tracer.trace(
        """
        import helper
        def f(x):
            return x * helper.FACTOR
        """
    )
    assert [each.reason for each in answer.caveats] == [
        "imports `helper`, whose line 2 did not run: it would write `run.log`",
        "imports `helper`, whose line 3 did not run: it would write `x.log`",
    ]
    assert "mul" in answer.jaxpr


def test_what_only_the_system_refuses_is_a_caveat_too(confined: Driver) -> None:
    confined.write(
        "helper.py",
        "import os\ndef pipe():\n    os.mkfifo('pipe')\ndef ask():\n    os.kill(os.getppid(), 0)\n",
    )
    answer = confined.trace(
        """
        import helper
        PIPE = helper.pipe()
        ASKED = helper.ask()
        def f(x):
            return x + 1
        """
    )
    assert [each.reason for each in answer.caveats] == [
        "did not run: it would change something outside of its process",
        "did not run: it would change something outside of its process",
    ]
