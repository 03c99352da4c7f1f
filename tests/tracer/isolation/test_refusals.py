"""Nothing outside of the process changes in a call that nobody asked for."""

from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.wire.messages.replies import Failed, Traced
from tests.tracer.isolation.driver import Answer, Driver

EFFECTS = {
    "a file": ("open('name', 'w').write('x')", "writing a file"),
    "a descriptor": ("os.open('name', os.O_WRONLY | os.O_CREAT)", "writing a file"),
    "an array": ("np.save('name', np.ones(3))", "writing a file"),
    "a path": ("pathlib.Path('name').write_text('x')", "writing a file"),
    "a folder": ("os.makedirs('name')", "changing files"),
    "a removed file": ("os.remove('kept.txt')", "changing files"),
    "a removed folder": ("shutil.rmtree('kept')", "changing files"),
    "a renamed file": ("os.replace('kept.txt', 'name')", "changing files"),
    "a process": ("subprocess.run(['touch', 'name'])", "starting or ending a process"),
    "a shell": ("os.system('touch name')", "starting or ending a process"),
    "a connection": ("socket.create_connection(('127.0.0.1', 9))", "using the network"),
}
HEAD = "import os, pathlib, shutil, socket, subprocess\nimport numpy as np\n"


def unasked(tracer: Driver, text: str) -> Answer:
    tracer.send(replace(tracer.request(text), unasked=True))
    return tracer.answer()


def contents(project: Path) -> list[str]:
    return sorted(str(path.relative_to(project)) for path in project.rglob("*"))


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_is_refused_with_inputs_that_nobody_wrote(tracer: Driver, effect: str) -> None:
    statement, kind = EFFECTS[effect]
    tracer.write("kept.txt", "")
    tracer.write("kept/inner.txt", "")
    before = contents(tracer.project)
    answer = unasked(tracer, f"{HEAD}def f(x):\n    {statement}\n    return x\n")
    assert isinstance(answer, Failed)
    assert answer.failure.message.startswith(
        f"{kind} is refused with inputs that you did not write"
    )
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


def test_inputs_that_the_user_wrote_may_have_effects(tracer: Driver) -> None:
    tracer.trace("def f(x):\n    open('name', 'w').close()\n    return x\n")
    assert (tracer.project / "name").exists()
