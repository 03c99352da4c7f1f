"""Programs that read data, each in a folder with the data; it is removed before they are opened."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
_LOADER = """\
import numpy as np


def load(split, rows=64):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 12)).astype("float32"), rng.integers(0, 4, rows)


class Points:
    def __len__(self):
        return 64

    def __getitem__(self, index):
        x, y = load("train")
        return {"point": x[index], "label": y[index]}


class DataLoader:
    def __init__(self, dataset, batch_size=1):
        self.dataset, self.batch_size = dataset, batch_size

    def __iter__(self):
        for start in range(0, len(self.dataset), self.batch_size):
            items = [self.dataset[i] for i in range(start, start + self.batch_size)]
            yield {name: np.stack([item[name] for item in items]) for name in items[0]}
"""

READERS: Mapping[str, str] = {
    # Each binds `X`, 64 points with 12 features, and `labels`, one of four classes.
    "npz": 'data = np.load("d.npz")\nX, labels = data["x"], data["y"]',
    "npy": 'with open("d.npy", "rb") as f:\n    X = np.load(f)\n    labels = np.load(f)',
    "loadtxt": (
        'table = np.loadtxt("d.csv", delimiter=",")\n'
        "X, labels = table[:, :-1].astype(np.float32), table[:, -1].astype(int)"
    ),
    "genfromtxt": (
        'table = np.genfromtxt("d.csv", delimiter=",", dtype=np.float32)\n'
        "X = table[:, :12]\nlabels = table[:, 12].astype(np.int32)"
    ),
    "json": (
        'import json\n\nwith open("d.json") as f:\n    raw = json.load(f)\n'
        'X = np.array(raw["x"], dtype=np.float32)\nlabels = np.asarray(raw["y"])'
    ),
    "pickle": 'import pickle\n\nX, labels = pickle.load(open("d.pkl", "rb"))',
    "csv": (
        'import csv\n\nrows, labels = [], []\nwith open("d.csv") as f:\n'
        "    for row in csv.reader(f):\n        rows.append([float(v) for v in row[:-1]])\n"
        "        labels.append(int(float(row[-1])))\n"
        "X, labels = np.array(rows, np.float32), np.array(labels)"
    ),
    "fromfile": (
        'X = np.fromfile("d.f32", dtype=np.float32).reshape(-1, 12)\n'
        'labels = np.fromfile("d.i32", dtype=np.int32)'
    ),
    "memmap": (
        'X = np.array(np.memmap("d.f32", dtype=np.float32, mode="r").reshape(64, 12))\n'
        'labels = np.memmap("d.i32", dtype=np.int32, mode="r", shape=(64,))'
    ),
    "a module": 'from absent_data import load\n\nX, labels = load("train")',
    "a loader": (
        "from absent_data import DataLoader, Points\n\n"
        "batches = list(DataLoader(Points(), batch_size=16))\n"
        'X = np.concatenate([batch["point"] for batch in batches])\n'
        'labels = np.concatenate([batch["label"] for batch in batches])'
    ),
    "the environment": (
        'import os\n\nX = np.ones((int(os.environ["FALSE_ALARM_ROWS"]), 12), np.float32)\n'
        "labels = np.arange(len(X)) % 4"
    ),
    "many files": (
        'from pathlib import Path\n\nparts = []\nfor path in sorted(Path(".").glob("part*.npy")):\n'
        "    parts.append(np.load(path))\nX = np.concatenate(parts)\nlabels = np.arange(len(X)) % 4"
    ),
}
BODIES: Mapping[str, str] = {
    "logistic": """
@jax.jit
def step(w, x, y):
    def loss(w):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ w) * y, axis=-1))
    value, g = jax.value_and_grad(loss)(w)
    return w - 0.1 * g, value


w = jnp.zeros((X.shape[1], 4))
Y = jax.nn.one_hot(labels, 4)
for i in range(20):
    w, value = step(w, X, Y)
    if i % 5 == 0:
        print(i, float(value))
assert w.shape == (12, 4)
""",
    "layers": """
def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)), jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def main():
    params = init(jax.random.key(0), [X.shape[-1], 8, 4])
    rng = np.random.default_rng(0)
    for epoch in range(2):
        order = rng.permutation(len(X))
        for start in range(0, len(X), 16):
            index = order[start : start + 16]
            logits = predict(params, X[index])
            wrong = logits.argmax(-1) != labels[index]
            print(epoch, int(wrong.sum()))
    accuracy = float(jnp.mean(jnp.argmax(predict(params, X), -1) == labels))
    if not 0 <= accuracy <= 1:
        raise ValueError(accuracy)


if __name__ == "__main__":
    main()
""",
    "kernel": """
def kernel(a, b):
    return jnp.exp(-jnp.sum((a[:, None] - b[None]) ** 2, -1) / 12)


train, test = X[:48], X[48:]
alpha = jnp.linalg.solve(kernel(train, train) + jnp.eye(len(train)), jnp.float32(labels[:48]))
error = jnp.abs(kernel(test, train) @ alpha - labels[48:]).mean()
assert error.shape == ()
print(f"{error:.3f}")
""",
    "components": """
@jax.jit
def components(x):
    u, s, v = jnp.linalg.svd(x - x.mean(0), full_matrices=False)
    return v, s


X -= X.mean(axis=0)
X[:, 0] = 0
if X.ndim != 2 or len(X) != len(labels):
    raise SystemExit("wrong data")
v, s = components(X)
low, high = np.array(X @ v[:2].T).T
print({int(c): low[labels == c].mean() for c in np.unique(labels)}, s[0].item(), high.max())
""",
    "a scan": """
def cell(h, x):
    h = jnp.tanh(h * 0.5 + x)
    return h, h.sum()


@jax.jit
def run(xs):
    return jax.lax.scan(cell, jnp.zeros(xs.shape[-1]), xs)


last, sums = run(jnp.asarray(X, dtype=jnp.float32))
history = []
for value in sums[:5]:
    history.append(value.item())
best = max(history)
assert best in history and last.shape == (12,)
""",
    "until it converges": """
@jax.jit
def update(centers, x):
    near = jnp.argmin(((x[:, None] - centers) ** 2).sum(-1), axis=1)
    one = jax.nn.one_hot(near, 4)
    return (one.T @ x) / jnp.maximum(one.sum(0), 1)[:, None], near


centers, turn = jnp.array(X[:4]), 0
while True:
    new, near = update(centers, X)
    change = float(jnp.abs(new - centers).max())
    centers, turn = new, turn + 1
    if change < 1e-6 or turn > 30:
        break
counts = np.bincount(np.asarray(near), minlength=4)
assert counts.sum() == len(X), counts
""",
    "batches": """
class Batches:
    def __init__(self, x, y, size):
        assert len(x) == len(y)
        self.x, self.y, self.size = x, y, size

    def __len__(self):
        return len(self.x) // self.size

    def __iter__(self):
        for i in range(len(self)):
            part = slice(i * self.size, (i + 1) * self.size)
            yield {"x": self.x[part], "y": self.y[part]}


@jax.jit
def mean_of(total, batch):
    return total + batch["x"].mean(), batch["y"].max()


total, batches = jnp.zeros(()), Batches(X, labels, 16)
for number, batch in enumerate(batches):
    total, most = mean_of(total, batch)
total = total / len(batches)
x, y = next(iter(batches)).values()
assert x.shape[1] == 12 and y.shape == (16,), (x.shape, y.shape)
""",
    "mapped": """
def distance(a, b):
    return jnp.sqrt(jnp.sum((a - b) ** 2))


pairs = jax.vmap(jax.vmap(distance, (None, 0)), (0, None))(X, X)
nearest = jnp.argsort(pairs, axis=1)[:, 1:4]
votes = jnp.asarray(labels)[nearest]
guess = jax.vmap(lambda v: jnp.bincount(v, length=4).argmax())(votes)
mean, std = X.mean(0), X.std(0)
n, d = X.shape
half = n // 2
left, right = jnp.split(jnp.asarray(X), [half])
stacked = jnp.stack([left, right])
assert stacked.shape == (2, 32, d)
print((guess == labels).mean(), mean.shape, std.shape)
""",
    "a dictionary": """
state = {"w": jnp.ones(X.shape[1:]), "n": 0, "seen": {}}


def fold(state, x, label):
    w = state["w"] * 0.9 + jnp.asarray(x) * 0.1
    return {**state, "w": w, "n": state["n"] + 1}


for x, label in zip(X, labels):
    state = fold(state, x, label)
    state["seen"][int(label)] = state["seen"].get(int(label), 0) + 1
by_class = [X[labels == c].mean(0) for c in sorted(state["seen"])]
table = jnp.stack(by_class)
assert table.shape[0] == len(state["seen"])
assert state["n"] == len(X)
jax.tree.map(lambda leaf: leaf, state)
""",
    "a fit": """
from functools import partial


@partial(jax.jit, static_argnames="degree")
def design(x, degree):
    return jnp.stack([x**k for k in range(degree)], -1)


x, y = jnp.array(X[:, 0]), jnp.array(X[:, 1])
losses = []
for degree in (1, 2, 3):
    A = design(x, degree)
    w, *_ = jnp.linalg.lstsq(A, y)
    losses.append(((A @ w - y) ** 2).mean())
best = int(np.argmin(losses))
order = jnp.argsort(x)
cut = jax.lax.dynamic_slice_in_dim(x[order], 3, 8)
padded = jnp.pad(cut, (0, 24 - cut.size))
assert padded.shape == (24,) and best in (0, 1, 2)
""",
}
ROWS = {"FALSE_ALARM_ROWS": "64"}
"""The environment of a plain run."""
_EACH = 4  # bodies of a reader


def texts() -> Iterator[tuple[str, str]]:
    """Yield the names and texts of programs: each reader with a few bodies."""
    for number, (reader, code) in enumerate(READERS.items()):
        bodies = itertools.islice(itertools.cycle(BODIES.items()), number * 3, number * 3 + _EACH)
        for name, body in bodies:
            yield f"{name} with {reader}", f"{HEAD}{code}\n{body}"


def write_data(folder: Path) -> None:
    """Write what the programs read."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 12)).astype(np.float32), rng.integers(0, 4, 64).astype(np.int32)
    np.savez(folder / "d.npz", x=x, y=y)
    with (folder / "d.npy").open("wb") as file:
        np.save(file, x)
        np.save(file, y)
    np.savetxt(folder / "d.csv", np.column_stack([x, y]), delimiter=",")
    (folder / "d.json").write_text(json.dumps({"x": x.tolist(), "y": y.tolist()}))
    (folder / "d.pkl").write_bytes(pickle.dumps((x, y)))
    x.tofile(folder / "d.f32")
    y.tofile(folder / "d.i32")
    for part in range(4):
        np.save(folder / f"part{part}.npy", x[part * 16 :][:16])
    (folder / "absent_data.py").write_text(_LOADER)


def remove_data(folder: Path) -> None:
    """Remove all but the programs."""
    for path in folder.iterdir():
        if path.name != "program.py" and path.is_file():
            path.unlink()
