"""A module whose import may touch others is recognized by its text."""

from __future__ import annotations

import sys
import types

import pytest

from jaxsight.tracer.importing.module_statements import touches_others

SHARED = """\
REG = {}
PARTS = []
class Plain: pass
class Base:
    def __init_subclass__(cls): PARTS.append(cls)
class Meta(type): pass
def register(f): return f
"""


def touches(text: str) -> bool:
    shared = types.ModuleType("shared")
    exec(SHARED, vars(shared))
    shared.__file__ = "/project/shared.py"
    sys.modules["shared"] = shared
    module = types.ModuleType("asked")
    sys.modules["asked"] = module
    module.__file__ = "/project/asked.py"
    try:
        exec(text, vars(module))
        return touches_others(text, module)
    finally:
        del sys.modules["shared"], sys.modules["asked"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import shared\nfrom shared import REG, register\n",
        "from shared import *\nSIZE = 3\n",
        "import jax\nimport jax.numpy as jnp\nTABLE = jnp.ones(3) * 2\n@jax.jit\ndef f(x): return x\n",
        "from shared import REG\nWIDTH = REG\nOTHER = {'a': WIDTH}\n",
        "from shared import REG\ndef f():\n    REG.clear()\n    return register(3)\n",
        "from shared import REG\nf = lambda: REG.clear()\n",
        "from shared import Plain\nclass Own(Plain):\n    size = 3\n    def f(self): return REG\n",
        "OWN = {}\nOWN['a'] = 3\nOWN.update(b=4)\nOWN |= {'c': 1}\n",
        "import dataclasses\n@dataclasses.dataclass\nclass Own:\n    size: int = 3\n",
        "for n in range(3):\n    last = n\n",
        "try:\n    import nothing_of_this_name\nexcept ImportError:\n    pass\n",
    ],
)
def test_what_only_imports_defines_and_computes_touches_nothing(text: str) -> None:
    assert not touches(text)


@pytest.mark.parametrize(
    "text",
    [
        "from shared import REG\nREG['a'] = 3\n",
        "from shared import REG\nREG.clear()\n",
        "from shared import REG as R\nR.setdefault('a', 1)\n",
        "import shared\nshared.LATE = 3\n",
        "import shared as s\nsetattr(s, 'LATE', 3)\n",
        "from shared import PARTS\nPARTS += [3]\n",
        "from shared import PARTS\nPARTS[:] = []\n",
        "from shared import PARTS\nown = PARTS\nown.append(3)\n",
        "from shared import PARTS\nfor n in range(2):\n    PARTS.append(n)\n",
        "from shared import REG\nREG['a'] = 1\ndel REG['a']\n",
        "from shared import register\n@register\ndef f(x): return x\n",
        "from shared import register\n@register\nclass Own: pass\n",
        "from shared import register\nf = register(3)\n",
        "from shared import Base\nclass Own(Base): pass\n",
        "from shared import Meta\nclass Own(metaclass=Meta): pass\n",
        "from shared import *\nREG.clear()\n",
        "import sys\nsys.modules['shared'].REG.update(a=1)\n",
        "import importlib\nimportlib.import_module('shared').REG.clear()\n",
        "import jax.numpy as jnp\njnp.EXTRA_OF_A_TEST = 3\ndel jnp.EXTRA_OF_A_TEST\n",
        "from shared import REG\nif 'a' not in REG:\n    REG['a'] = 1\n",
        "from shared import REG\nclass Own:\n    REG['a'] = 1\n",
        "from shared import REG\ndef f(x, y=REG.setdefault('a', 1)): return x\n",
        "exec('import shared; shared.REG.clear()')\n",
    ],
)
def test_what_may_change_an_object_of_another_module_touches_it(text: str) -> None:
    assert touches(text)
