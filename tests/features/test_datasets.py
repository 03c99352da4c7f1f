"""Programs that load a data set that everybody knows are shown with the shapes that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.session import Session
from jaxsight.source.text import Position

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = (
    "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
    "import tensorflow as tf\nimport tensorflow_datasets as tfds\n\n\n"
    "def f(x, y=None):\n    return jnp.sum(x / 255.0)\n\n\n"
)
PROGRAMS = {
    # What `f` is called with.
    "an iterator": (
        (
            'data = iter(tfds.as_numpy(tfds.load("mnist:3.*.*", split="train").repeat().batch(32)))\n'
            "f(next(data)['image'], next(data)['label'])"
        ),
        "x: u8[32,28,28,1], y: i32[32]",
    ),
    "a loop": (
        (
            'for batch in tfds.load("cifar10", split="test", batch_size=16).as_numpy_iterator():\n'
            "    jax.jit(f)(batch['image'], batch['label'])"
        ),
        "x: u8[16,32,32,3], y: i32[16]",
    ),
    "pairs": (
        (
            'for x, y in tfds.load("mnist", split="train", as_supervised=True).batch(8).prefetch(1):\n'
            "    f(x, y)"
        ),
        "x: u8[8,28,28,1], y: i32[8]",
    ),
    "all of it": (
        (
            'builder = tfds.builder("fashion_mnist")\nbuilder.download_and_prepare()\n'
            'train = tfds.as_numpy(builder.as_dataset(split="train", batch_size=-1))\n'
            "f(jnp.float32(train['image']), train['label'])"
        ),
        "x: f32[60000,28,28,1], y: i32[60000]",
    ),
    "splits": (
        (
            'train, test = tfds.load("mnist", split=["train", "test"], batch_size=-1)\n'
            "f(test['image'], test['label'])"
        ),
        "x: u8[10000,28,28,1], y: i32[10000]",
    ),
    "no split": (
        'data = tfds.load("mnist", batch_size=-1)\nf(data["test"]["image"])',
        "x: u8[10000,28,28,1]",
    ),
    "a map": (
        (
            'data = tfds.load("mnist", split="train")\n'
            'data = data.map(lambda item: item["image"].reshape(-1) / 255.0).batch(4)\n'
            "f(next(iter(data)))"
        ),
        "x: f32[4,784]",
    ),
    "information": (
        (
            'data, info = tfds.load("mnist", split="train[:80%]", with_info=True)\n'
            "f(next(iter(data.shuffle(10).batch(4)))['image'])"
        ),
        "x: u8[4,28,28,1]",
    ),
    "arrays": (
        "(x_train, y_train), _ = tf.keras.datasets.mnist.load_data()\nf(x_train, y_train)",
        "x: u8[60000,28,28], y: u8[60000]",
    ),
    "a program": (
        (
            "def main():\n    data = tfds.load('mnist', split='train').batch(8)\n"
            "    for batch in data:\n        f(batch['image'])\n\n\n"
            'if __name__ == "__main__":\n    main()'
        ),
        "x: u8[8,28,28,1]",
    ),
}
UNKNOWN = {
    "another name": 'f(next(iter(tfds.load("my_own", split="train").batch(4)))["image"])',
    "an unknown size": (
        'data = tfds.load("mnist", split="train[:80%]", batch_size=-1)\nf(data["image"])'
    ),
    "a function of TensorFlow": (
        'data = tfds.load("mnist", split="train").map(lambda item: tf.cast(item, tf.float32))\n'
        "f(next(iter(data.batch(4)))['image'])"
    ),
    "a list of a loop": (
        'xs = []\nfor item in tfds.load("mnist", split="test"):\n    xs.append(jnp.ones(3))\n'
        "f(jnp.stack(xs))"
    ),
}


async def shown(session: Session, path: str, program: str) -> str:
    text = f"{HEAD}{program}\n"
    session.open(path, text)
    await session.background.settle(path, patience=240)
    line = text.split("\n").index("def f(x, y=None):")
    hover = await session.hover(path, Position(line, 4))
    findings = (await session.report(path)).reported
    session.close(path)
    assert [finding for finding in findings if finding.severity == "error"] == []
    return hover.markdown if hover is not None else ""


@pytest.mark.parametrize("name", PROGRAMS)
async def test_elements_have_the_shapes_of_the_data_set(
    name: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    program, said = PROGRAMS[name]
    assert said in await shown(own, str(root / f"known_{len(program)}.py"), program)


@pytest.mark.parametrize("name", UNKNOWN)
async def test_what_is_not_known_stays_unknown(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    markdown = await shown(own, str(root / f"unknown_{len(name)}.py"), UNKNOWN[name])
    assert "x: " not in markdown
