"""Questions about code that may depend on the number of devices differ by the target's number."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jaxsight.queries.documents import Document
from jaxsight.queries.traces.query import Question, ask
from jaxsight.settings.example_settings import ExampleSettings

FUNCTION = '''
def f(x):
    """
    Example inputs:
        x: f32[8]
    """
    return x * SCALE
'''


def keys(text: str, *numbers: int, x: str = ": f32[8]") -> list[str]:
    document = Document("/project/model.py", text + FUNCTION.replace(": f32[8]", x))
    (subject,) = document.subjects(ExampleSettings({}, {}))
    settings = SimpleNamespace(timeouts=SimpleNamespace(statement=5.0))
    project = SimpleNamespace(root="/project", environment="", settings=settings)
    found = []
    for devices in numbers:
        question = ask(
            document,
            subject,
            subject.examples.sets[0],
            project,  # type: ignore[arg-type]
            devices=devices,
        )
        assert isinstance(question, Question)
        assert question.trace.devices == devices
        found.append(question.key)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "import jax\nSCALE = jax.device_count()\n",
        "import jax\nSCALE = jax.make_mesh((2,), ('x',)).size\n",
        "from ours import SCALE\n",
        "import numpy, ours.layers\nSCALE = ours.layers.SCALE\n",
        "from .ours import SCALE\n",
        "import importlib\nSCALE = importlib.import_module('ours').SCALE\n",
    ],
)
def test_the_number_is_part_of_a_question_that_may_depend_on_it(text: str) -> None:
    assert len(set(keys(text, 0, 4, 8))) == 3


@pytest.mark.parametrize(
    "text",
    [
        "SCALE = 2.0\n",
        "import math\nimport jax.numpy as jnp, numpy as np\nSCALE = jnp.ones(8) * math.pi\n",
        "from flax import nnx\nfrom jax.nn import relu\nSCALE = relu(2.0)\n",
    ],
)
def test_other_questions_stay_the_same_for_another_target(text: str) -> None:
    assert len(set(keys(text, 0, 4, 8))) == 1


def test_the_number_is_part_of_a_question_whose_inputs_name_devices() -> None:
    text = "import jax\nimport jax.numpy as jnp\nSCALE = 2.0\n"
    assert len(set(keys(text, 0, 4, 8, x=" = jnp.ones(jax.device_count())"))) == 3
