"""What programs call functions with, found by running them without values."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from jaxsight.queries.traces.located_answer import View
from jaxsight.wire.messages.replies import Traced
from tests.truth.measure import session

_IMPORTS = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"


@dataclass(frozen=True)
class Program:
    """A file, and the arguments that its functions are shown with; none for those not shown."""

    name: str
    text: str
    shown: dict[str, dict[str, str]]


PROGRAMS = [
    Program(
        "helpers",
        """
        def init(key, sizes):
            return [jax.random.normal(key, (a, b)) for a, b in zip(sizes[:-1], sizes[1:])]

        def loss(params, x):
            for w in params:
                x = x @ w
            return x.sum()

        def main():
            params = init(jax.random.key(0), [4, 8, 2])
            print(float(loss(params, jnp.ones((16, 4)))))

        if __name__ == "__main__":
            main()
        """,
        {"loss": {"params": "[f32[4,8], f32[8,2]]", "x": "f32[16,4]"}},
    ),
    Program(
        "arguments",
        """
        import argparse

        def step(w, x):
            return w * x

        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--size", type=int, default=3)
            parser.add_argument("data")
            options = parser.parse_args()
            w = jnp.zeros(options.size)
            for x in np.load(options.data):
                w = step(w, x)
            w = step(w, jnp.ones((5, options.size)))

        if __name__ == "__main__":
            main()
        """,
        {"step": {}},
    ),
    Program(
        "loops",
        """
        @jax.jit
        def update(w, x):
            return w - x.mean(0)

        def stacked(losses):
            return losses.mean()

        def layers(ws, x):
            for w in ws:
                x = x @ w
            return x

        def main():
            w, losses, ws = jnp.zeros(7), [], []
            for step in range(1_000_000):
                w = update(w, np.ones((32, 7), np.float32))
                losses.append(w.sum())
            stacked(jnp.stack(losses))
            for _ in range(3):
                ws.append(jnp.ones((7, 7)))
            layers(ws, w)

        main()
        """,
        # A loop that was left early has changed the list: nothing is said of it.
        {
            "update": {"w": "f32[7]", "x": "f32[32,7]"},
            "stacked": {},
            "layers": {"ws": "[f32[7,7], f32[7,7], f32[7,7]]", "x": "f32[7]"},
        },
    ),
    Program(
        "while_loops",
        """
        def halve(x):
            return x / 2

        def main():
            x = jnp.ones((4, 4))
            while x.sum() > 1e-3:
                x = halve(x)

        if __name__ == "__main__":
            main()
        """,
        {"halve": {"x": "f32[4,4]"}},
    ),
    Program(
        "failing",
        """
        import missing_library

        def f(x, y):
            return x + y

        def g(x):
            return x * 2

        def main():
            table = missing_library.load("table")
            x = jnp.ones(6)
            try:
                x = missing_library.scaled(x)
            except ValueError:
                pass
            f(jnp.ones(6), table["y"])
            with missing_library.context():
                g(jnp.ones((2, 3)))

        if __name__ == "__main__":
            main()
        """,
        {"f": {}, "g": {"x": "f32[2,3]"}},
    ),
    Program(
        "handlers",
        """
        try:
            import missing_library
        except ImportError:
            missing_library = None

        def f(x):
            return x * 2

        def g(x):
            return x * 3

        def main():
            x = jnp.ones(6)
            try:
                import another_missing_library
            except ImportError:
                f(jnp.ones((2, 2)))
            try:
                table = np.asarray(x)
            except Exception:
                table = jnp.ones((7, 7))
            g(table)

        if __name__ == "__main__":
            main()
        """,
        # An array has no values in a dry run alone: that handler is not meant.
        {"f": {"x": "f32[2,2]"}, "g": {}},
    ),
    Program(
        "factories",
        """
        import functools

        def make_step(scale):
            offset = jnp.arange(4.0)

            @jax.jit
            def step(x):
                return x * scale + offset

            return step

        @functools.partial(jax.vmap, in_axes=(None, 0))
        def rows(w, x):
            return w @ x

        def main():
            step = make_step(2.0)
            step(jnp.ones((8, 4)))
            rows(jnp.ones((3, 4)), jnp.ones((8, 4)))

        if __name__ == "__main__":
            main()
        """,
        {
            "make_step.<locals>.step": {"x": "f32[8,4]"},
            "rows": {"w": "f32[3,4]", "x": "f32[4]"},  # as its body sees them
        },
    ),
    Program(
        "linen",
        """
        from flax import linen as nn

        class Net(nn.Module):
            width: int = 5

            @nn.compact
            def __call__(self, x, train: bool = False):
                x = nn.Dense(self.width)(x)
                return nn.Dropout(0.5, deterministic=not train)(x)

        def main():
            net = Net()
            variables = net.init(jax.random.key(0), jnp.ones((1, 3)))
            net.apply(variables, jnp.ones((9, 3)), train=True, rngs={"dropout": jax.random.key(1)})

        if __name__ == "__main__":
            main()
        """,
        {"Net.__call__": {"x": "f32[9,3]"}},
    ),
    Program(
        "linen_under_a_named_axis",
        """
        from flax import linen as nn

        class Net(nn.Module):
            @nn.compact
            def __call__(self, x):
                return nn.BatchNorm(use_running_average=False, axis_name="batch")(x)

        def step(variables, x):
            out, _ = Net().apply(variables, x, mutable=["batch_stats"])
            return jax.lax.pmean(out.mean(), "batch")

        def main():
            variables = Net().init(jax.random.key(0), jnp.ones((9, 3)))
            jax.pmap(step, axis_name="batch", in_axes=(None, 0))(variables, jnp.ones((1, 9, 3)))

        if __name__ == "__main__":
            main()
        """,
        {"Net.__call__": {"x": "f32[9,3]"}, "step": {"x": "f32[9,3]"}},
    ),
    Program(
        "nnx_modules",
        """
        from flax import nnx

        class Net(nnx.Module):
            def __init__(self, width, rngs):
                self.layer = nnx.Linear(3, width, rngs=rngs)

            def __call__(self, x):
                return self.layer(x)

        @nnx.jit
        def step(net, x):
            return net(x).sum()

        def main():
            net = Net(5, nnx.Rngs(0))
            step(net, jnp.ones((9, 3)))

        if __name__ == "__main__":
            main()
        """,
        {"Net.__call__": {"x": "f32[9,3]"}, "step": {"x": "f32[9,3]"}},
    ),
    Program(
        "given",
        """
        def scaled(x, by=2.0):
            return x * by

        def variadic(x, *rest, **options):
            return x

        class Layer:
            def __init__(self, n):
                self.n = n

            def __call__(self, x):
                return x * self.n

        def outer(x):
            def inner(y):
                return jnp.sin(y)
            return inner(x)

        def doubled(x):
            return x * 2

        def everything(x):
            '''
            Example inputs:
                x: f32[4, 3]
            '''
            a = jax.vmap(jax.jit(scaled))(x)
            jax.lax.scan(lambda c, r: (c, variadic(r, c, key=1)), 0.0, x)
            return a, Layer(2)(x), outer(x[0])

        def documented(x):
            '''
            >>> documented(jnp.ones(7))
            '''
            return doubled(x) + 1
        """,
        {
            "scaled": {"x": "f32[3]", "by": "2.0"},
            "variadic": {"x": "f32[3]"},
            "outer": {"x": "f32[3]"},
            "doubled": {"x": "f32[7]"},
        },
    ),
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, str]]]:
    """The arguments of the traced functions, by program, function and parameter."""
    folder = tmp_path_factory.mktemp("programs")
    for program in PROGRAMS:
        (folder / f"{program.name}.py").write_text(_IMPORTS + dedent(program.text))
    return asyncio.run(_shown(folder))


async def _shown(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = {}
    async with session(folder, sys.executable, examplesAssumed=False) as running:
        for program in PROGRAMS:
            path = str(folder / f"{program.name}.py")
            running.open(path, _IMPORTS + dedent(program.text))
            await running.background.settle(path, patience=120)  # also on a machine that is busy
            document = running.engine.documents.get(path)
            assert document is not None
            functions = found[program.name] = {}
            for subject in running.engine.documents.subjects(document):
                view = await running.engine.traces.view(document, subject, None)
                if isinstance(view, View) and isinstance(view.answer.reply, Traced):
                    functions[subject.name] = dict(view.answer.reply.parameters)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_functions_are_shown_as_a_program_calls_them(
    program: Program, shown: dict[str, dict[str, dict[str, str]]]
) -> None:
    if "flax" in program.text:
        pytest.importorskip("flax")
    for function, expected in program.shown.items():
        given = {
            name: re.sub(r"\s+", " ", text)
            for name, text in shown[program.name].get(function, {}).items()
        }
        assert {name: given.get(name) for name in expected} == expected, function
        assert expected or not given, f"{function} is shown with {given}"
