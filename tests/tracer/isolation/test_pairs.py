"""Hostile files one after another, then a sane one: it is answered as in a fresh process, or a
fresh process is asked for.
"""

import random
from pathlib import Path

import pytest

from jaxsight.wire.messages.replies import Spoiled, Traced
from tests.tracer.isolation.driver import Driver

HOSTILE = {
    "x64": "import jax\njax.config.update('jax_enable_x64', True)",
    "numpy's errors": "import numpy as np\nnp.seterr(all='raise')",
    "seeds": "import random\nimport numpy as np\nrandom.seed(1)\nnp.random.seed(1)",
    "decimals": "import decimal\ndecimal.getcontext().prec = 2",
    "patched functions": (
        "import math\nimport jax.numpy as jnp\nmath.sqrt = lambda x: 9.0\njnp.sin = jnp.cos"
    ),
    "patched methods": (
        "import fractions\nfractions.Fraction.__float__ = lambda self: 9.0\n"
        "fractions.Fraction.limit = 9"
    ),
    "a patched rule": (
        "import jax\nfrom jax.interpreters import ad\n"
        "def wrong(tangent, ans, x):\n    return tangent * 9.0\n"
        "ad.defjvp2(jax.lax.cos_p, wrong)"
    ),
    "builtins": "import builtins\nbuiltins.float = int\nbuiltins.abs = lambda *_: 9.0",
    "a helper": "import helper\nhelper.SCALE = 9.0\nhelper.TABLE['a'] = 9.0\nhelper.count()",
    "the environment": "import os, sys\nos.environ['SCALE'] = '9'\nsys.path.insert(0, 'nowhere')\nos.chdir('/')",
    "limits": (
        "import resource, sys, os\nresource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))\n"
        "sys.setrecursionlimit(170)\nos.umask(0o777)"
    ),
    "hooks": (
        "import sys, warnings, logging\nsys.meta_path.insert(0, None)\n"
        "warnings.simplefilter('error')\nlogging.disable()"
    ),
    "a thread": (
        "import threading, time, jax\n"
        "def loop():\n    while True:\n        jax.config.update('jax_enable_x64', True)\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=loop, daemon=True).start()"
    ),
    "a pytree": (
        "import fractions\nimport jax\n"
        "jax.tree_util.register_pytree_node(fractions.Fraction, lambda f: ((), f), lambda f, _: f)"
    ),
    "modules": "import sys\nfor name in ('json', 'helper', 'jax.numpy'):\n    sys.modules[name] = None",
    "a stand-in": (
        "import sys, types\nsys.modules['absent'] = types.ModuleType('absent')\nimport absent"
    ),
    "an exit": "raise SystemExit(3)",
}

SANE = """
import decimal
import fractions
import json
import math
import os
import sys
import jax
import jax.numpy as jnp
import numpy as np
import helper

try:
    import absent
except ImportError:
    absent = None

ONE = float(math.sqrt(4.0)) + float(fractions.Fraction(1, 2)) + abs(-3.0)
TWO = (absent is None) + helper.SCALE + helper.TABLE["a"] + helper.COUNT[0] + ("SCALE" in os.environ)
THREE = float(np.geterr()["over"] == "warn") + float(decimal.getcontext().prec == 28)
FOUR = len(json.dumps([1, 2])) + hasattr(fractions.Fraction, "limit")
LEAVES = len(jax.tree.leaves(fractions.Fraction(1, 2)))

def f(x):
    y = jax.grad(lambda x: jnp.cos(x).sum())(x) + jnp.sin(x) + jnp.zeros(4, "float64")
    return y * ONE + TWO + THREE + FOUR + LEAVES
"""

HELPER = """
SCALE = 1.0
TABLE = {"a": 2.0}
COUNT = [0]
def count():
    COUNT[0] += 1
"""


def hostile(name: str) -> str:
    """A file that does this when it is run; all of it is run."""
    body = HOSTILE[name].replace("\n", "\n    ")
    return f"def act():\n    {body}\n    return 1\nDONE = act()  # jaxsight: always\ndef f(x):\n    return x * DONE\n"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_any_hostile_files_a_sane_one_is_answered_as_in_a_fresh_process(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    (tmp_path / "helper.py").write_text(HELPER)
    driver = Driver(tmp_path)
    expected = driver.trace(SANE, file="sane.py").jaxpr
    replaced = 0
    for _ in range(25):
        names = draw.sample(list(HOSTILE), draw.randint(1, 2))
        for name in (*names, "sane"):
            text, file = (SANE, "sane.py") if name == "sane" else (hostile(name), f"{name}.py")
            answer = driver.ask(text, file=file)
            if isinstance(answer, Spoiled):
                replaced += 1
                driver.close()
                driver = Driver(tmp_path)
                answer = driver.ask(text, file=file)
            assert not isinstance(answer, Spoiled)
        assert isinstance(answer, Traced), (names, answer)
        assert answer.jaxpr == expected, names
    driver.close()
    assert replaced < 25
