"""Programs get the defaults of their command lines; what they require is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.session import Session
from tests.features.test_unknown_sizes import hover_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import jax\nimport jax.numpy as jnp\n\n\n@jax.jit\ndef f(x):\n    return jnp.sin(x)\n\n\n"
GUARD = '\n\n\nif __name__ == "__main__":\n    '
PROGRAMS = {
    # What `f` is called with.
    "argparse": (
        (
            "import argparse\n\n\ndef main():\n    p = argparse.ArgumentParser()\n"
            "    p.add_argument('--width', type=int, default=64)\n"
            "    p.add_argument('--data', required=True)\n"
            f"    f(jnp.ones((8, p.parse_args().width))){GUARD}main()"
        ),
        "x: f32[8,64]",
    ),
    "argparse at the top level": (
        (
            "import argparse\n\np = argparse.ArgumentParser()\np.add_argument('path')\n"
            "p.add_argument('--width', type=int, required=True)\n"
            "p.add_argument('--size', default='16', type=int)\n"
            "args, rest = p.parse_known_args()\nopts = vars(args)\n"
            "f(jnp.ones((opts['size'], args.width)))"
        ),
        "x: f32[16,?V]",
    ),
    "absl": (
        (
            "from absl import app, flags\n\nFLAGS = flags.FLAGS\n"
            "flags.DEFINE_integer('stand_in_width', 32, 'w')\n\n\ndef main(argv):\n"
            f"    f(jnp.ones((8, FLAGS.stand_in_width))){GUARD}app.run(main)"
        ),
        "x: f32[8,32]",
    ),
    "absl, required": (
        (
            "from absl import app, flags\n\n_SIZE = flags.DEFINE_integer('stand_in_size', None, 's')\n"
            "flags.mark_flag_as_required('stand_in_size')\n\n\ndef main(argv):\n"
            f"    f(jnp.ones((8, _SIZE.value))){GUARD}app.run(main)"
        ),
        "x: f32[8,?V]",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_programs_get_their_defaults(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    program, types = PROGRAMS[name]
    path, text = root / f"line_{'_'.join(name.replace(',', '').split())}.py", f"{HEAD}{program}\n"
    hover = await hover_of(own, path, text)
    assert types in hover, hover
    own.open(str(path), text)
    await own.background.settle(str(path), patience=240)
    findings = (await own.report(str(path))).reported
    own.close(str(path))
    assert [finding.message for finding in findings] == []
