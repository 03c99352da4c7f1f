"""What is missing costs only the functions that need it: modules that no import finds, and data."""

import pytest

from tests.tracer.isolation.driver import Driver

HEAD = """
import jax
import jax.numpy as jnp
import tensorflow_not_here as tf
import datasets_not_here.public as public
from my_not_here import show
from typing import Callable, Optional

"""
NEEDED = "`tensorflow_not_here` is not installed"


def text_of(source: str) -> str:
    """The head, and a source whose lines are indented by four columns."""
    return HEAD + "\n".join(line[4:] for line in source.split("\n"))


def test_who_does_not_need_a_missing_module_is_traced_without_a_caveat(tracer: Driver) -> None:
    text = text_of("""
    AUTO = tf.data.AUTOTUNE
    tf.config.set_visible_devices([], "GPU")
    data = public.load("mnist")
    batches = data.map(lambda x: x)
    show(jnp.sin, 3.0)

    def f(x):
        return x + 1

    def prepare(x: tf.Tensor | None, y: Optional[tf.Tensor] = None) -> Callable[[tf.A[int]], int]:
        return tf.cast(x)

    class Model(tf.keras.Model):
        def __init__(self):
            self.a = 1
    """)
    answer = tracer.trace(text)
    assert not answer.caveats
    assert "add" in answer.jaxpr


@pytest.mark.parametrize(
    "body",
    [
        "return x * len(batches)",
        "return x + batches",
        "return jnp.add(x, batches)",
        "return jnp.zeros(3, dtype=tf.float32)",
        "return jnp.zeros(data.shape)",
        "return x if tf.something else 2 * x",
        "return x if x.dtype == tf.float32 else 2 * x",
        "return x if isinstance(x, tf.Tensor) else 2 * x",
        "return [x for _ in data]",
        "return x * decorated(x)",
        "Model()\n    return x",
        "Model.build(x)\n    return x",
        "import pandas_not_here\n    return x + pandas_not_here.mean(x) + tf.cast(x)",
    ],
)
def test_who_needs_it_fails_with_one_clear_message(tracer: Driver, body: str) -> None:
    text = text_of(f"""
    data = tf.load("mnist")
    batches = data.map(lambda x: x)

    @tf.function
    def decorated(x):
        return x

    class Model(tf.keras.Model):
        pass

    def f(x):
        {body.replace(chr(10), chr(10) + "    ")}
    """)
    failed = tracer.fail(text)
    assert failed.failure.message in (NEEDED, "`pandas_not_here` is not installed")
    assert failed.failure.stage == "trace"
    assert failed.failure.frames[-1].function == "f"
    assert not failed.caveats


def test_an_error_that_was_caught_is_a_caveat(tracer: Driver) -> None:
    text = text_of("""
    try:
        SCALE = tf.load("scale")
    except Exception:
        SCALE = 2.0

    def f(x):
        return x * SCALE

    def g(x):
        try:
            return tf.cast(x)
        except Exception:
            return x

    def h(x):
        return x
    """)
    for name in ("f", "g"):
        (caveat,) = tracer.trace(text, name).caveats
        assert caveat.reason == NEEDED
    assert not tracer.trace(text, "h").caveats


@pytest.mark.parametrize("decorator", ["tf.function", "tf.function(jit_compile=True)"])
def test_what_a_missing_decorator_decorates_is_traced_with_a_caveat(
    tracer: Driver, decorator: str
) -> None:
    text = text_of(f"""
    @{decorator}
    def f(x):
        return x + 1

    class Model:
        @{decorator}
        def call(self, x):
            return x

        @staticmethod
        def scale(x):
            return x * 3.0
    """)
    (caveat,) = tracer.trace(text).caveats
    assert caveat.reason == NEEDED
    assert not tracer.trace(text, "Model.scale").caveats


@pytest.mark.parametrize(
    "handler",
    ["ImportError", "ModuleNotFoundError", "(ValueError, ImportError)", "Exception", ""],
)
def test_code_that_handles_a_missing_module_sees_the_error(tracer: Driver, handler: str) -> None:
    text = f"""
    try:
        import not_here
        A = 3.0
    except {handler}:
        A = 2.0

    def f(x):
        return x * A
    """
    answer = tracer.trace(text)
    assert "2.0" in answer.jaxpr
    assert not answer.caveats


def test_a_handler_of_other_errors_does_not_count(tracer: Driver) -> None:
    text = """
    try:
        import not_here
        A = 3.0
    except (ValueError, KeyError):
        A = 2.0

    def f(x):
        return x * A
    """
    assert "3.0" in tracer.trace(text).jaxpr


def test_a_module_of_the_project_may_import_what_is_missing(tracer: Driver) -> None:
    tracer.write("pipe.py", "import not_here\nB = 3.0\ndef load():\n    return not_here.load()\n")
    text = """
    import pipe
    data = pipe.load()

    def f(x):
        return x * pipe.B

    def g(x):
        return x * data
    """
    answer = tracer.trace(text)
    assert not answer.caveats
    assert tracer.fail(text, "g").failure.message == "`not_here` is not installed"


def test_code_around_the_import_of_such_a_module_may_handle_it(tracer: Driver) -> None:
    tracer.write("pipe.py", "import not_here\n")
    text = """
    try:
        import pipe
        A = 3.0
    except ImportError:
        A = 2.0

    def f(x):
        return x * A
    """
    assert "2.0" in tracer.trace(text).jaxpr


def test_a_module_that_is_there_now_is_imported(tracer: Driver) -> None:
    tracer.write("pipe.py", "import later\ndef scale(x):\n    return x * later.A\n")
    text = """
    import pipe
    import later

    def f(x):
        return pipe.scale(x)

    def g(x):
        return x * later.A
    """
    for name in ("f", "g"):
        assert tracer.fail(text, name).failure.message == "`later` is not installed"
    tracer.write("later.py", "A = 3.0\n")
    for name in ("f", "g"):
        assert "3.0" in tracer.trace(text, name).jaxpr


@pytest.mark.parametrize(
    "statement",
    [
        "DATA = np.load('data.npz')",
        "DATA = open('data.npz').read()",
        "with open('data.npz') as file:\n        DATA = file.read()",
        "def load():\n        return np.loadtxt('data.npz')\n    DATA = load()",
    ],
)
def test_data_that_is_missing_costs_who_needs_it(tracer: Driver, statement: str) -> None:
    text = f"""
    import numpy as np
    {statement}

    def f(x):
        return x

    def g(x):
        return x * DATA
    """
    assert not tracer.trace(text, "f").caveats
    failed = tracer.fail(text, "g")
    assert "data.npz" in failed.failure.message
    assert failed.failure.frames[-1].function == "g"
    assert not failed.caveats


def test_containers_that_a_statement_without_its_data_fills_are_unknown(tracer: Driver) -> None:
    text = """
    SIZES = []
    for line in open("sizes.txt"):
        SIZES.append(int(line))

    def f(x):
        return x * len(SIZES)
    """
    failed = tracer.fail(text, "f")
    assert failed.failure.message == "`sizes.txt` does not exist"


def test_what_a_statement_without_its_data_may_have_changed_is_a_caveat(tracer: Driver) -> None:
    text = """
    class Sizes:
        total = 0
        def add(self, line):
            self.total += int(line)

    SIZES = Sizes()
    for line in open("sizes.txt"):
        SIZES.add(line)

    def f(x):
        return x * SIZES.total
    """
    (caveat,) = tracer.trace(text).caveats
    assert caveat.reason == "did not run: `sizes.txt` does not exist"
