"""Errors of a file's own program are findings at the user's line; what follows from us is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.rules.finding import Severity
from jaxsight.session import Session

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import os\nimport sys\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n"
PRODUCT = "def f(w, x):\n    y = jnp.sin(x)\n    return jnp.sum(y @ w)  # HERE\n\n\n"
BRANCH = "def f(x):\n    if x > 1:  # HERE\n        return x\n    return -x\n\n\n"
GUARD = 'if __name__ == "__main__":\n    '
W, X = "jnp.ones((3, 4))", "jnp.ones((2, 5))"

RAISED = {
    # A finding at the line with HERE, by its code.
    "called": (f"{PRODUCT}print(f({W}, {X}))", "JX330"),
    "jit": (f"{PRODUCT}print(jax.jit(f)({W}, {X}))", "JX330"),
    "grad": (f"{PRODUCT}print(jax.grad(f)({W}, {X}))", "JX330"),
    "value_and_grad": (f"{PRODUCT}print(jax.value_and_grad(f)({W}, {X}))", "JX330"),
    "vmap": (f"{PRODUCT}print(jax.vmap(f, (None, 0))({W}, {X}))", "JX330"),
    "scan": (
        f"{PRODUCT}jax.lax.scan(lambda c, x: (c, f({W}, x)), 0.0, {X})",
        "JX330",
    ),
    "by a helper": (f"{PRODUCT}def g(x):\n    return f({W}, x)\n\n\nprint(g({X}))", "JX330"),
    "guarded": (f"{PRODUCT}{GUARD}print(f({W}, {X}))", "JX330"),
    "guarded jit": (f"{PRODUCT}{GUARD}print(jax.jit(f)({W}, {X}))", "JX330"),
    "main": (f"{PRODUCT}def main():\n    print(f({W}, {X}))\n\n\n{GUARD}main()", "JX330"),
    "in a loop": (f"{PRODUCT}for _ in range(3):\n    print(f({W}, {X}))", "JX330"),
    "a traced number": (f"{BRANCH}print(jax.jit(f)(2.0))", "JX401"),
    "a traced number, guarded": (f"{BRANCH}{GUARD}print(jax.jit(f)(2.0))", "JX401"),
    "a statement": ("x = jnp.ones(3)\nprint(x @ jnp.ones(4))  # HERE", "JX330"),
    "a guarded statement": (f"x = jnp.ones(3)\n{GUARD}print(x @ jnp.ones(4))  # HERE", "JX330"),
    "a constructor": (
        "class Model:\n    def __init__(self, n):\n"
        + "        self.w = jnp.ones(n).reshape(2, 2)  # HERE\n\n\n"
        + "model = Model(3)\nprint(jnp.sum(model.w))",
        "JX330",
    ),
    "without parameters": (
        "def f():\n    return jnp.ones(3) @ jnp.ones(4)  # HERE\n\n\nprint(f())",
        "JX330",
    ),
    "a misspelled function": (
        "def f(x):\n    return jnp.sinn(x)  # HERE\n\n\nprint(f(jnp.ones(3)))",
        "JX400",
    ),
}

UNKNOWN = "import argparse\nparser = argparse.ArgumentParser()\n"
UNKNOWN += "parser.add_argument('path')\nparser.add_argument('n', type=int)\n"
UNKNOWN += "def main():\n    args = parser.parse_args()\n    size = args.n\n    {}\n\n\nmain()"
USES = (
    "print(open(args.path))",
    "print(int(args.n))",
    "print(os.path.join(args.path, 'weights'))",
    "print(np.zeros((size, 3)))",
    "print(jnp.zeros((size, 3)))",
    "print([*range(size)])",
    "print(', '.join([args.path]))",
    "print({'small': 3}[args.path])",
    "print(jnp.ones(6).reshape(size, 2))",
    "print([1, 2, 3][size])",
    "print(jax.jit(lambda x: x * size)(jnp.ones(3)))",
    "print(getattr(jnp, args.path)(jnp.ones(3)))",
    "w = jnp.ones(4 if size == 4 else 5)\n    print(w @ jnp.ones(4))",
)
"""What a program does with required arguments, which nobody gave."""

QUIET_PROGRAMS = {
    **{f"unknown: {use}": UNKNOWN.format(use) for use in USES},
    # Nothing that plain Python raises where the program is meant to run.
    "a missing file": 'data = np.load("there_is_none.npy")\nprint(jnp.sum(data @ data))',
    "after a missing file": (
        'text = open("there_is_none.txt").read()\nsize = len(set(text))\n'
        "def f(x):\n    return x.reshape(size, -1)\n\n\nprint(f(jnp.ones(6)))"
    ),
    "a missing module": "import not_installed\nprint(jnp.sum(not_installed.load() @ jnp.ones(3)))",
    "an argument": "n = int(sys.argv[1])\nprint(jnp.ones(n))",
    "a variable": 'n = int(os.environ["THERE_IS_NONE"])\nprint(jnp.ones(n))',
    "an answer": 'n = int(input("n: "))\nprint(jnp.ones(n))',
    "its own check": (
        'if len(sys.argv) < 9:\n    raise ValueError("usage")\nprint(jnp.sum(jnp.ones(3)))'
    ),
    "an end": "print(jnp.sum(jnp.ones(3)))\nsys.exit(1)",
    "a caught error": (
        "try:\n    y = jnp.ones(3) @ jnp.ones(4)\nexcept TypeError:\n    y = jnp.ones(3)\n"
        "print(jnp.sum(y))"
    ),
    "a guarded caught error": (
        f"{GUARD}try:\n        y = jnp.ones(3) @ jnp.ones(4)\n    except TypeError:\n"
        "        y = jnp.ones(3)\n    print(jnp.sum(y))"
    ),
    "a number of an array": (
        f"{GUARD}x = jnp.sum(jnp.ones(3))\n    print(float(x), int(x), x.item(), np.asarray(x))"
    ),
    "a branch on an array": f"{GUARD}x = jnp.sum(jnp.ones(3))\n    if x > 1:\n        print(x)",
    "a file that is written": (
        'np.save("made.npy", np.ones(3))\ny = np.load("made.npy")\nprint(jnp.sum(y))'
    ),
    "a list of a long loop": (
        "xs = []\nfor i in range(1000):\n    xs.append(jnp.ones(2) * i)\n"
        "print(jnp.stack(xs).reshape(1000, 2))"
    ),
    "a guarded list of a long loop": (
        f"{GUARD}xs = []\n    for i in range(1000):\n        xs.append(jnp.ones(2) * i)\n"
        "    print(jnp.stack(xs).reshape(1000, 2))"
    ),
    "a loop that ends by a value": (
        f"{GUARD}x, n = jnp.ones(()), 0\n    while x < 100:\n        x, n = x * 2, n + 1\n"
        "    print(jnp.ones(7).reshape(n))"
    ),
    "an error under an unknown condition": (
        f"{GUARD}data = np.load('there_is_none.npy')\n    if data.mean() > 0:\n"
        "        print(jnp.ones(3) @ jnp.ones(4))"
    ),
    "an error under a condition on an array": (
        f"{GUARD}if jnp.sum(jnp.ones(3)) > 5:\n        print(jnp.ones(3) @ jnp.ones(4))"
    ),
    "an error after an unknown condition": (
        f"{GUARD}n = 4 if os.environ.get('WIDE') or jnp.sum(jnp.ones(3)) > 5 else 3\n"
        "    print(jnp.ones(3) @ jnp.ones(n))"
    ),
    "another device": (
        'devices = jax.devices("gpu")\nprint(jax.device_put(jnp.ones(3), devices[0]))'
    ),
    "several devices": (
        "mesh = jax.make_mesh((4,), ('data',))\nprint(jnp.sum(jnp.ones(mesh.size)))"
    ),
    "data of the program": (
        "import pickle\nwith open('weights.pkl', 'rb') as file:\n    params = pickle.load(file)\n"
        "def f(p, x):\n    return x @ p['w']\n\n\nprint(f(params, jnp.ones((2, 3))))"
    ),
}


async def found(session: Session, path: Path, text: str) -> list[tuple[int, str, Severity]]:
    """Return the lines, the codes and the severities of the findings about errors."""
    session.open(str(path), text)
    await session.background.settle(str(path), patience=240)
    findings = (await session.report(str(path))).reported
    session.close(str(path))
    return [(f.range.start.line, f.code, f.severity) for f in findings if not f.assumed]


@pytest.mark.parametrize("name", RAISED)
async def test_an_error_of_the_program_is_a_finding_where_it_is_raised(
    name: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    program, code = RAISED[name]
    text = f"{HEAD}{program}\n"
    (line,) = (n for n, content in enumerate(text.split("\n")) if "HERE" in content)
    actual = await found(own, root / f"raised_{list(RAISED).index(name)}.py", text)
    assert actual == [(line, code, Severity.ERROR)]


@pytest.mark.parametrize("name", QUIET_PROGRAMS)
async def test_what_plain_python_does_not_raise_is_no_error(
    name: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    path = root / f"quiet_{list(QUIET_PROGRAMS).index(name)}.py"
    actual = await found(own, path, f"{HEAD}{QUIET_PROGRAMS[name]}\n")
    assert [each for each in actual if each[2] is Severity.ERROR] == []
