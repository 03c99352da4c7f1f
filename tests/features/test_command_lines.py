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
    # What `f` is called with. Fire, tyro, hydra and omegaconf are not installed.
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
    "click": (
        (
            "import click\n\n\n@click.command()\n@click.option('--width', default=64)\n"
            f"def main(width):\n    f(jnp.ones((8, width))){GUARD}main()"
        ),
        "x: f32[8,64]",
    ),
    "click, a group": (
        (
            "import click\n\n\n@click.group()\ndef cli():\n    pass\n\n\n@cli.command()\n"
            "@click.argument('path')\n@click.option('--width', type=int, required=True)\n"
            "@click.option('--size', default='4', type=int)\n"
            f"def train(path, width, size):\n    f(jnp.ones((size, width))){GUARD}cli()"
        ),
        "x: f32[4,?V]",
    ),
    "typer": (
        (
            "import typer\n\n\ndef main(width: int = 64):\n"
            f"    f(jnp.ones((8, width))){GUARD}typer.run(main)"
        ),
        "x: f32[8,64]",
    ),
    "typer, required": (
        (
            "from typing import Annotated\nimport typer\n\napp = typer.Typer()\n\n\n@app.command()\n"
            "def train(path: str, size: int, width: Annotated[int, typer.Option()] = 64):\n"
            f"    f(jnp.ones((size, width))){GUARD}app()"
        ),
        "x: f32[?V,64]",
    ),
    "fire": (
        f"import fire\n\n\ndef main(width=64):\n    f(jnp.ones((8, width))){GUARD}fire.Fire(main)",
        "x: f32[8,64]",
    ),
    "fire, required": (
        (
            "from fire import Fire\n\n\ndef train(path, width: int, size=4):\n"
            f"    f(jnp.ones((size, width))){GUARD}Fire(train)"
        ),
        "x: f32[4,?V]",
    ),
    "tyro": (
        (
            "from dataclasses import dataclass\n\nimport tyro\n\n\n@dataclass\nclass Args:\n"
            "    path: str\n    width: int = 64\n\n\ndef main(args):\n"
            f"    f(jnp.ones((8, args.width))){GUARD}main(tyro.cli(Args))"
        ),
        "x: f32[8,64]",
    ),
    "tyro, required": (
        (
            "import tyro\n\n\ndef main(width: int, size: int = 4):\n"
            f"    f(jnp.ones((size, width))){GUARD}tyro.cli(main)"
        ),
        "x: f32[4,?V]",
    ),
    "hydra": (
        (
            "import hydra\nfrom omegaconf import DictConfig\n\n\n"
            "@hydra.main(version_base=None, config_path='conf', config_name='config')\n"
            f"def main(cfg: DictConfig):\n    f(jnp.ones((8, cfg.model.width))){GUARD}main()"
        ),
        "x: f32[8,?V]",
    ),
    "hydra, without a guard": (
        (
            "import hydra\n\n\n@hydra.main(config_name='config')\ndef main(cfg):\n"
            "    f(jnp.ones((cfg.size, 3)))\n\n\nmain()"
        ),
        "x: f32[?V,3]",
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


async def test_fire_that_is_installed(project: tuple[Session, Path]) -> None:
    own, root = project
    (root / "fire.py").write_text(
        "import sys\n\n\ndef Fire(component):\n    assert len(sys.argv) > 1, 'no arguments'\n"
    )
    program = f"{HEAD}from fire import Fire\n\n\ndef train(path, width=7):\n    f(jnp.ones(width))"
    hover = await hover_of(own, root / "uses_fire.py", f"{program}{GUARD}Fire(train)\n")
    (root / "fire.py").unlink()
    assert "x: f32[7]" in hover, hover
