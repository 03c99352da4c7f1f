"""What one file changes in the process never shows in another, and comes back with the file
itself.
"""

import os

import pytest

from tests.tracer.isolation.driver import Driver

PLAIN = """
import jax.numpy as jnp
def f(x):
    return x + jnp.zeros(4, 'float64')
"""

WIDE = """
import jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
def f(x):
    return x + jnp.zeros(4, 'float64')
"""


def test_options_of_jax_stay_with_their_file(tracer: Driver) -> None:
    assert "f64" in tracer.trace(WIDE, file="wide.py").jaxpr
    assert "f64" not in tracer.trace(PLAIN, file="plain.py").jaxpr
    again = tracer.trace(WIDE, file="wide.py")
    assert "f64" in again.jaxpr
    assert again.executed == 0


def test_an_option_that_leaves_the_text_is_undone(tracer: Driver) -> None:
    tracer.trace(WIDE)
    narrow = WIDE.replace('jax.config.update("jax_enable_x64", True)\n', "")
    assert "f64" not in tracer.trace(narrow).jaxpr


def test_a_changed_option_runs_what_was_computed_under_it_again(tracer: Driver) -> None:
    text = WIDE.replace("def f", "ONE = jnp.ones(())\ndef f").replace(
        "jnp.zeros(4, 'float64')", "ONE"
    )
    assert "f64" in tracer.trace(text).jaxpr
    assert "f64" not in tracer.trace(text.replace("True", "False")).jaxpr


@pytest.mark.parametrize(("value", "wide"), [("1", True), ("true", True), ("0", False)])
def test_a_variable_set_before_jax_is_imported_counts(
    tracer: Driver, value: str, wide: bool
) -> None:
    text = f"import os\nos.environ['JAX_ENABLE_X64'] = {value!r}\n" + PLAIN
    assert ("f64" in tracer.trace(text).jaxpr) is wide


def test_a_variable_set_after_jax_is_imported_does_not_count(tracer: Driver) -> None:
    text = "import jax\nimport os\nos.environ['JAX_ENABLE_X64'] = '1'\n" + PLAIN
    text = text.replace("def f(x):", "def f(x):\n    jax.numpy")
    assert "f64" not in tracer.trace(text).jaxpr


def test_variables_and_the_path_stay_with_their_file(tracer: Driver) -> None:
    tracer.write("lib/thing.py", "VALUE = 5\n")
    sets = """
    import os, sys
    os.environ["SCALE"] = "3"
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
    def f(x):
        from thing import VALUE
        return x * float(os.environ["SCALE"]) * VALUE
    """
    reads = "import os, sys\ndef f(x):\n    return x * ('SCALE' in os.environ) * len([p for p in sys.path if p.endswith('lib')])\n"
    assert "5.0" in tracer.trace(sets, file="sets.py").jaxpr
    text = tracer.trace(reads, file="reads.py").jaxpr
    assert "3.0" not in text
    assert "3.0" in tracer.trace(sets, file="sets.py").jaxpr


def test_a_package_that_sets_options_does_so_for_each_file_that_imports_it(tracer: Driver) -> None:
    tracer.write("pkg/__init__.py", "import jax\njax.config.update('jax_enable_x64', True)\n")
    tracer.write("pkg/a.py", PLAIN)
    tracer.write("pkg/b.py", PLAIN)
    assert "f64" in tracer.trace(PLAIN, file="pkg/a.py", module="pkg.a").jaxpr
    assert "f64" not in tracer.trace(PLAIN, file="plain.py").jaxpr
    assert "f64" in tracer.trace(PLAIN, file="pkg/b.py", module="pkg.b").jaxpr
    uses = PLAIN.replace("import jax.numpy", "import pkg.a\nimport jax.numpy").replace(
        "return x", "return pkg and x"
    )
    assert "f64" in tracer.trace(uses, file="uses.py").jaxpr


def test_every_file_runs_in_the_root(tracer: Driver) -> None:
    (tracer.project / "data.txt").write_text("4")
    (tracer.project / "sub").mkdir()
    (tracer.project / "sub" / "data.txt").write_text("6")
    reads = "N = float(open('data.txt').read())\ndef f(x):\n    return x * N\n"
    moves = "import os\nos.environ['MOVED'] = os.chdir('sub') or '1'\n" + reads
    assert "6.0" in tracer.trace(moves, file="moves.py").jaxpr
    assert "4.0" in tracer.trace(reads, file="reads.py").jaxpr


def test_a_file_may_ask_for_devices_after_another_used_one(tracer: Driver) -> None:
    counts = "import jax\ndef f(x):\n    return x * float(len(jax.devices()))\n"
    asks = (
        "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'\n" + counts
    )
    assert "1.0" in tracer.trace(counts, file="counts.py").jaxpr
    assert "8.0" in tracer.trace(asks, file="asks.py").jaxpr
    assert tracer.trace(asks, file="asks.py").executed == 0
    assert "1.0" in tracer.trace(counts, file="counts.py").jaxpr
    option = "import jax\njax.config.update('jax_num_cpu_devices', 3)\n" + counts
    assert "3.0" in tracer.trace(option, file="option.py").jaxpr
    assert "1.0" in tracer.trace(counts, file="counts.py").jaxpr


def test_the_environment_keeps_the_accelerator_free(tracer: Driver) -> None:
    if "JAX_PLATFORMS" not in os.environ:
        assert tracer.hello.platform == "cpu"
    assert tracer.hello.jax
    assert tracer.hello.jaxlib
    assert tracer.hello.pid == tracer.process.pid
    assert tracer.hello.problem == ""


def test_a_mesh_that_is_set_for_good_stays_with_its_file(tracer: Driver) -> None:
    reads = """
    import jax
    def f(x):
        return x * (7.0 if "batch" in jax.sharding.get_abstract_mesh().axis_names else 5.0)
    """
    sets = """
    import jax
    MESH = jax.make_mesh((1,), ("batch",))
    SET = jax.set_mesh(MESH)
    def f(x):
        return x * (7.0 if SET and "batch" in jax.sharding.get_abstract_mesh().axis_names else 5.0)
    """
    assert "7.0" in tracer.trace(sets, file="sets.py").jaxpr
    assert "5.0" in tracer.trace(reads, file="reads.py").jaxpr
    again = tracer.trace(sets, file="sets.py")
    assert "7.0" in again.jaxpr
    assert again.executed == 0


def test_an_option_that_is_entered_and_never_left_stays_with_its_file(tracer: Driver) -> None:
    enters = """
    import jax
    import jax.numpy as jnp
    CONTEXT = jax.enable_x64(True)
    CONTEXT.__enter__()
    def f(x):
        return x + jnp.ones(4)
    """
    plain = "import jax.numpy as jnp\ndef f(x):\n    return x + jnp.ones(4)\n"
    assert "f64[4]" in tracer.trace(enters, file="enters.py").jaxpr
    assert "f64[4]" not in tracer.trace(plain, file="plain.py").jaxpr
    assert "f64[4]" in tracer.trace(enters, file="enters.py").jaxpr


def test_the_handler_of_a_signal_comes_back_with_its_file(tracer: Driver) -> None:
    text = """
    import signal
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    def f(x):
        return x * (2.0 if signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN else 3.0)
    """
    assert "2.0" in tracer.trace(text, file="sets.py").jaxpr
    plain = text.replace("signal.signal(signal.SIGUSR2, signal.SIG_IGN)", "pass")
    assert "3.0" in tracer.trace(plain, file="plain.py").jaxpr
    assert "2.0" in tracer.trace(text, file="sets.py").jaxpr
