"""What JAX and its libraries renamed, moved and removed: a table, to which releases add rows.

A row is `old = new`, the release that deprecated `old`, and the oldest known release without it; a
dash stands for what is not known, or has not happened. Two spaces or more separate them.

| form of a row | meaning |
|---|---|
| `jax.tree_map = jax.tree.map` | another name of the same thing; a module stands for all in it |
| `jax.lax.pvary(x, a) = f(x, a, to="b")` | calls with these positional arguments are written so |
| `jax.numpy.clip(a_min=) = min` | a keyword with another name |
| `jax.f(vectorized=True) = mode="all"` | a keyword with this value is written so |
| `jax.g ! use h` | no drop-in replacement: the help |

The versions are those of the changelogs of JAX (CHANGELOG.md of jax-ml/jax), Optax and Flax, of the
tables `_deprecations` in their modules, and of warnings in their code and Equinox's.
`tests/rules/test_outdated_api.py` holds the rows against the installed packages.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

_ROWS = """
jax.tree_map = jax.tree.map                                              0.4.26  0.6.0
jax.tree_flatten = jax.tree.flatten                                      0.4.26  0.6.0
jax.tree_leaves = jax.tree.leaves                                        0.4.26  0.6.0
jax.tree_structure = jax.tree.structure                                  0.4.26  0.6.0
jax.tree_transpose = jax.tree.transpose                                  0.4.26  0.6.0
jax.tree_unflatten = jax.tree.unflatten                                  0.4.26  0.6.0
jax.tree_multimap = jax.tree.map                                         0.3.5   0.3.16
jax.config.config = jax.config                                           0.4.25  0.4.29
jax.linear_util = jax.extend.linear_util                                 -       0.4.24
jax.random.KeyArray = jax.Array                                          -       0.4.24
jax.random.PRNGKeyArray = jax.Array                                      -       0.4.24
jax.random.shuffle(k, x) = jax.random.permutation(k, x, independent=True)  -     0.4.31
jax.numpy.DeviceArray = jax.Array                                        -       0.8.0
jax.numpy.NINF ! use `-jnp.inf`                                          -       0.4.24
jax.numpy.row_stack = jax.numpy.vstack                                   -       0.4.24
jax.numpy.trapz = jax.numpy.trapezoid                                    -       0.4.24
jax.numpy.in1d = jax.numpy.isin                                          -       0.4.24
jax.numpy.round_ = jax.numpy.round                                       0.4.32  0.4.38
jax.numpy.fix = jax.numpy.trunc                                          0.9.0   0.10.0
jax.numpy.clip(a_min=) = min                                             0.4.27  0.10.2
jax.numpy.clip(a_max=) = max                                             0.4.27  0.10.2
jax.numpy.linalg.pinv(rcond=) = rtol                                     0.4.29  -
jax.numpy.linalg.matrix_rank(tol=) = rtol                                0.4.29  -
jax.scipy.linalg.tril = jax.numpy.tril                                   -       0.4.24
jax.scipy.linalg.triu = jax.numpy.triu                                   -       0.4.24
jax.scipy.special.sph_harm(m, n, a, b) = jax.scipy.special.sph_harm_y(n, m, b, a)  0.7.0  0.10.0
jax.nn.normalize = jax.nn.standardize                                    -       0.4.29
jax.lax.pvary(x, axes) = jax.lax.pcast(x, axes, to="varying")            0.8.2   0.10.0
jax.ops.index_update(x, i, y) = x.at[i].set(y)                           0.2.22  0.3.2
jax.ops.index_add(x, i, y) = x.at[i].add(y)                              0.2.22  0.3.2
jax.pure_callback(vectorized=True) = vmap_method="expand_dims"           0.4.35  0.6.0
jax.pure_callback(vectorized=False) = vmap_method="sequential"           0.4.35  0.6.0
jax.xla_computation ! use `jax.jit(f).lower(*args).compiler_ir("hlo")`   0.4.30  0.4.34
jax.device_put_replicated ! use `jax.device_put` with a sharding         0.8.1   0.10.0
jax.device_put_sharded ! use `jax.device_put` with a sharding            0.8.1   0.10.0
jax.ad_checkpoint.checkpoint = jax.checkpoint                            0.8.2   0.10.0
jax.ad_checkpoint.remat = jax.remat                                      0.8.2   0.10.0
jax.dlpack.to_dlpack ! pass the array to `from_dlpack` of the other framework  0.6.0  0.8.0
jax.util.safe_map ! use `map` with `zip(…, strict=True)`                 0.6.0   0.7.0
jax.util ! write the helper yourself                                     0.6.0   0.7.0
jax.util.safe_zip ! use `zip(…, strict=True)`                            0.6.0   0.7.0
jax.sharding.use_mesh = jax.set_mesh                                     -       0.7.1
jax.experimental.enable_x64() = jax.enable_x64(True)                     0.8.0   0.10.0
jax.experimental.enable_x64(on) = jax.enable_x64(on)                     0.8.0   0.10.0
jax.experimental.disable_x64() = jax.enable_x64(False)                   0.8.0   0.10.0
jax.experimental.mutable_array = jax.new_ref                             0.8.0   0.10.2
jax.experimental.shard_map.shard_map = jax.shard_map                     0.8.0   -
jax.experimental.shard_map.shard_map(f, m, i, o) = \
jax.shard_map(f, mesh=m, in_specs=i, out_specs=o)                        0.8.0   -
jax.experimental.shard_map.shard_map(check_rep=) = check_vma             0.8.0   -
jax.experimental.pjit.pjit = jax.jit                                     -       -
jax.experimental.pjit.with_sharding_constraint = jax.lax.with_sharding_constraint  0.4.1  0.8.0
jax.experimental.PartitionSpec = jax.sharding.PartitionSpec              0.4.1   0.8.0
jax.experimental.pjit.PartitionSpec = jax.sharding.PartitionSpec         0.4.1   0.8.0
jax.experimental.maps.Mesh = jax.sharding.Mesh                           0.4.1   0.4.31
jax.experimental.maps.xmap ! use `jax.shard_map`  0.4.26  0.4.31
jax.experimental.maps ! use `jax.sharding.Mesh` and `jax.shard_map`      0.4.26  0.4.31
jax.experimental.host_callback ! use `jax.pure_callback` or `io_callback`  0.4.26  0.8.0
jax.experimental.export = jax.export                                     0.4.30  0.4.36
jax.experimental.stax = jax.example_libraries.stax                       -       0.3.16
jax.experimental.optimizers = jax.example_libraries.optimizers           -       0.3.16
jax.experimental.pallas.load(r, i) = r[i]                                0.8.0   0.10.2
jax.experimental.pallas.store ! write `ref[index] = value`               -       0.10.2
jax.experimental.pallas.tpu.ANY = jax.experimental.pallas.ANY            -       0.10.2
jax.experimental.pallas.tpu.TPUCompilerParams = jax.experimental.pallas.tpu.CompilerParams  -  0.8.0
jax.experimental.pallas.tpu.TPUMemorySpace = jax.experimental.pallas.tpu.MemorySpace  -  0.8.0
jax.extend.ffi = jax.ffi                                                 0.5.0   0.8.0
jax.lib.xla_bridge.get_backend = jax.extend.backend.get_backend          0.4.32  0.8.0
jax.lib.xla_bridge.default_backend = jax.default_backend                 0.4.32  0.4.38
jax.lib.xla_client.XlaRuntimeError = jax.errors.JaxRuntimeError          0.4.34  0.5.0
jax.lib.xla_extension.XlaRuntimeError = jax.errors.JaxRuntimeError       0.4.36  0.6.0
jax.interpreters.pxla.Mesh = jax.sharding.Mesh                           -       0.8.0
jax.interpreters.pxla.thread_resources ! use `jax.sharding.get_abstract_mesh()`  0.8.2  -
jax.interpreters.xla.DeviceArray = jax.Array                             -       0.8.0
jax.core.get_aval = jax.typeof                                           0.8.2   0.10.0
jax.core.is_concrete ! test `not isinstance(x, jax.core.Tracer)`         -       0.12.0
optax.tree_utils.tree_scalar_mul = optax.tree_utils.tree_scale           0.2.5   -
optax.tree_utils.tree_add_scalar_mul = optax.tree_utils.tree_add_scale   0.2.5   -
optax.tree_utils.tree_l2_norm = optax.tree_utils.tree_norm               0.2.5   -
optax.tree_utils.tree_l1_norm(x) = optax.tree_utils.tree_norm(x, ord=1)  0.2.5   -
optax.global_norm = optax.tree.norm                                      -       -
flax.nnx.VariableState = flax.nnx.Variable                               -       -
equinox.static_field() = equinox.field(static=True)                      -       -
equinox.experimental.BatchNorm = equinox.nn.BatchNorm                    -       0.13.8
equinox.experimental ! use `equinox.nn.State` and `equinox.nn.BatchNorm`  -      0.13.8
equinox.nn.Dropout(deterministic=) = inference                           -       -
flax.optim ! use Optax                                                   -       0.6.0
"""

_TO_EXTEND = {
    ("0.4.38", "0.6.0"): "ClosedJaxpr Jaxpr JaxprEqn Literal Primitive Token Var jaxpr_as_fun",
    ("0.10.0", "0.12.0"): "DropVar check_jaxpr concrete_or_error gensym jaxprs_in_params "
    "new_jaxpr_eqn",
}
"""Names that moved from `jax.core` to `jax.extend.core`, by the versions of a row."""

_MOVED = {
    ("jax.experimental.pallas", "jax.experimental.pallas.triton", "", "0.10.2"): "atomic_add "
    "atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor",
    ("jax.experimental.pallas.tpu", "jax.experimental.pallas", "", "0.12.0"): "semaphore "
    "semaphore_read semaphore_signal semaphore_wait",
}
"""Names that moved from one module to another, by both and the versions of a row."""

_PROJECTS = {"jax": "JAX", "optax": "Optax", "flax": "Flax", "equinox": "Equinox"}
_KEYWORD = re.compile(r"(?P<name>\w+)=(?P<value>\w*)")


@dataclass(frozen=True, slots=True)
class Replacement:
    """A name that became another one, or a keyword of a function."""

    old: str
    """The full name of the function, class or module."""
    new: str
    """The full name, the expression, or the keyword to write; empty if nothing replaces it."""
    since: str
    """The release that deprecated it, or an empty string."""
    gone: str
    """The oldest known release without it, or an empty string."""
    help: str = ""
    """What to do where nothing replaces it."""
    parameters: tuple[str, ...] | None = None
    """Names of the positional arguments that `new` is written with; `None` for a plain name."""
    keyword: str = ""
    value: str = ""
    """The value of the keyword that the row is about; empty for all."""

    @staticmethod
    def of(line: str) -> Replacement:
        """Return the replacement of a line of the table."""
        change, since, gone = re.split(r"  +", line)
        since, gone = since.strip("-"), gone.strip("-")
        if " ! " in change:
            old, help = change.split(" ! ")
            return Replacement(old, "", since, gone, help)
        old, new = change.split(" = ")
        old, bracket, inside = old.partition("(")
        inside = inside.removesuffix(")")
        if (keyword := _KEYWORD.fullmatch(inside)) is not None:
            return Replacement(
                old, new, since, gone, keyword=keyword["name"], value=keyword["value"]
            )
        parameters = tuple(filter(None, inside.split(", "))) if bracket else None
        return Replacement(old, new, since, gone, parameters=parameters)

    @property
    def package(self) -> str:
        """The name of the package that it is about."""
        return self.old.partition(".")[0]

    @property
    def calls_back(self) -> bool:
        """Whether what it is about calls Python functions from programs, which are not run."""
        return self.old.endswith("_callback")

    @property
    def display(self) -> str:
        """What messages call it: `jax.tree_map`, `jax.numpy.clip(a_min=…)`."""
        keyword = f"({self.keyword}={self.value or '…'})" if self.keyword else ""
        return f"{self.old}{keyword}"

    @property
    def message(self) -> str:
        """What is wrong."""
        project = _PROJECTS[self.package]
        if self.gone:
            return f"`{self.display}` does not exist in {project} {self.gone} and newer"
        since = f" since {project} {self.since}" if self.since else f" in {project}"
        return f"`{self.display}` is deprecated{since}"

    @property
    def display_new(self) -> str:
        """What messages call the replacement: `jax.tree.map`, `min=…`."""
        return f"`{self.new}{'=…' if self.keyword and not self.value else ''}`"

    @property
    def notes(self) -> tuple[str, ...]:
        """When it was deprecated, if it is gone now."""
        project = _PROJECTS[self.package]
        was = f"deprecated since {project} {self.since}"
        return (was,) if self.since and self.gone else ()


@functools.cache
def rows() -> Mapping[str, tuple[Replacement, ...]]:
    """Return the rows by the name that they are about."""
    table: dict[str, tuple[Replacement, ...]] = {}
    every = [Replacement.of(line) for line in _ROWS.strip().splitlines()]
    for (since, gone), names in _TO_EXTEND.items():
        every += [
            Replacement(f"jax.core.{name}", f"jax.extend.core.{name}", since, gone)
            for name in names.split()
        ]
    for (module, home, since, gone), names in _MOVED.items():
        every += [
            Replacement(f"{module}.{name}", f"{home}.{name}", since, gone) for name in names.split()
        ]
    for row in every:
        table[row.old] = (*table.get(row.old, ()), row)
    return table


@functools.cache
def pattern_of_names() -> re.Pattern[str]:
    """Return the pattern of a text that may have a use of a row."""
    last = {row.old.rpartition(".")[2] for each in rows().values() for row in each}
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, last)))})\b")


def row_of(name: str) -> Replacement | None:
    """Return the row of a full name, or of the module that it is in; not those of keywords."""
    while name := name.rstrip("."):
        plain = [row for row in rows().get(name, ()) if not row.keyword]
        if plain:
            return plain[0]
        name = name.rpartition(".")[0]
    return None


def configured(call: ast.Call) -> ast.expr:
    """Return what a call passes its keywords to: its function, or that of `partial(f, …)`."""
    is_partial = ast.unparse(call.func).rpartition(".")[2] == "partial"
    return call.args[0] if is_partial and call.args else call.func


def rows_of_call(name: str, call: ast.Call) -> list[tuple[Replacement, ast.keyword]]:
    """Return the rows of the keywords of a call of the function with a full name."""
    return [
        (row, keyword)
        for row in rows().get(name, ())
        for keyword in call.keywords
        if keyword.arg is not None
        and keyword.arg == row.keyword
        and row.value in ("", ast.unparse(keyword.value))
    ]
