"""Facts about functions by their full names: no side effects, only wrapping, not to be run unasked.

A function that is not listed may do anything. Add a name only if it is certain.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from jaxsight.text.names import name_set, words

PLAIN_PACKAGES = {
    *sys.stdlib_module_names,
    *words(
        """
        jax jaxlib numpy scipy ml_dtypes jaxtyping beartype typing_extensions flax optax equinox
        einops chex haiku diffrax lineax optimistix matplotlib tqdm absl rich requests httpx wandb
        mlflow
        """
    ),
} - {"antigravity", "this"}
"""Packages whose import has no side effects that other code sees.

They are imported nevertheless, because code before and after the import may affect them.
"""

BUILTINS = name_set(
    """
    abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter
    float format frozenset hash hex id int isinstance issubclass len list map max min object oct
    ord pow print range repr reversed round set slice sorted staticmethod classmethod property
    str sum tuple type zip ArithmeticError AssertionError AttributeError Exception ImportError
    IndexError KeyError NotImplementedError RuntimeError StopIteration TypeError ValueError
    ZeroDivisionError
    """
)
"""Builtins without side effects, except those of functions that they are passed."""

_PURE = words(
    """
    jax.numpy. jax.lax. jax.nn. jax.random. jax.scipy. jax.image. jax.dtypes. jax.tree. jax.ops.
    jax.tree_util.tree_ math. cmath. numpy.linalg. numpy.fft. scipy.special. typing.
    collections.abc. fractions. numbers. jax.sharding.PartitionSpec jax.sharding.AbstractMesh
    jax.typing. jaxtyping.
    """
)
_PURE_NAMES = frozenset(
    f"{module}.{name}"
    for module, names in {
        "jax": """
            Array ShapeDtypeStruct block_until_ready device_count device_get device_put devices
            eval_shape linearize jvp vjp local_device_count make_jaxpr named_scope default_backend
            linear_transpose typeof
        """,
        "functools": "reduce",
        "dataclasses": "field replace fields asdict astuple is_dataclass",
        "collections": "namedtuple OrderedDict defaultdict deque Counter ChainMap",
        "itertools": """
            accumulate chain chain.from_iterable combinations compress count cycle dropwhile
            filterfalse groupby islice pairwise permutations product repeat starmap takewhile
            zip_longest
        """,
        "copy": "copy deepcopy",
        "enum": "auto Enum IntEnum",
        "re": "compile escape",
        "time": "time perf_counter monotonic",
        "types": "SimpleNamespace MappingProxyType",
        "string": "Template",
        "textwrap": "dedent indent",
        "os": "cpu_count getpid fspath",
        "os.path": "join dirname basename abspath splitext normpath expanduser",
        "pathlib": "Path PurePath",
        "operator": """
            add sub mul truediv floordiv mod pow neg pos abs eq ne lt le gt ge and_ or_ xor not_
            matmul itemgetter attrgetter getitem contains
        """,
        "numpy": """
            abs absolute add all allclose angle any append arange arccos arcsin arctan arctan2
            argmax argmin argsort argwhere around array array_equal array_split asarray
            ascontiguousarray atleast_1d atleast_2d atleast_3d bincount block bool_ broadcast_shapes
            broadcast_to ceil clip column_stack complex128 complex64 concatenate conj cos cosh cross
            cumprod cumsum diag diagonal diff divide dot dstack dtype einsum empty empty_like equal
            exp expand_dims expm1 eye finfo fix flatnonzero flip float16 float32 float64 floor
            floor_divide full full_like gradient greater hstack hypot identity iinfo imag indices
            inner int16 int32 int64 int8 interp isclose isfinite isinf isnan kron less linspace log
            log10 log1p log2 logical_and logical_not logical_or logspace matmul max maximum mean
            median meshgrid min minimum mod moveaxis multiply nan_to_num ndim negative nonzero ones
            ones_like outer pad percentile power prod quantile ravel real reciprocal repeat reshape
            result_type roll rot90 round searchsorted shape sign sin sinc sinh size sort split sqrt
            square squeeze stack std subtract sum swapaxes take tan tanh tensordot tile trace
            transpose trapezoid tri tril triu uint16 uint32 uint64 uint8 unique unravel_index vander
            var vdot vstack where zeros zeros_like
        """,
    }.items()
    for name in names.split()
)
_IMPURE = words(
    """
    jax.numpy.save jax.numpy.load jax.numpy.put jax.numpy.printoptions
    jax.numpy.set_printoptions jax.random.set typing.TYPE_CHECKING jax.numpy.place
    jax.numpy.copyto jax.numpy.fill_diagonal jax.tree_util.tree_register
    """
)

_WRAPPERS = name_set(
    """
    jit vmap pmap pjit grad value_and_grad jacfwd jacrev jacobian hessian checkpoint remat
    custom_vjp custom_jvp custom_gradient named_call closure_convert shard_map partial wraps
    lru_cache cache cached_property total_ordering singledispatch singledispatchmethod dataclass
    runtime_checkable final overload override abstractmethod property staticmethod classmethod
    filter_jit filter_grad filter_value_and_grad filter_vmap filter_pmap filter_jvp filter_vjp
    filter_checkpoint filter_custom_vjp filter_custom_jvp compact nowrap
    register_pytree_node_class register_pytree_with_keys_class register_dataclass
    register_static transform transform_with_state scan jaxtyped beartype contextmanager
    split_rngs
    """
)
"""Names of functions in the packages below that wrap their arguments without calling them.

The wrapped function is called only when the result is.
"""
_WRAPPING_PACKAGES = name_set(
    """
    jax functools dataclasses typing typing_extensions abc contextlib equinox flax haiku
    jaxtyping beartype
    """
)
_WRAPPERS_HERE = frozenset({"property", "staticmethod", "classmethod"})

_STATEFUL = frozenset({"lru_cache", "cache", "cached_property", "singledispatch"})

_JITS = frozenset({"jit", "pmap", "pjit", "filter_jit", "filter_pmap", "value_and_grad", "grad"})
_JITS |= {"filter_value_and_grad", "filter_grad", "shard_map"}

BASES = name_set(
    """
    object Exception ValueError RuntimeError TypeError dict list tuple typing.NamedTuple
    typing.Protocol typing.Generic typing.TypedDict abc.ABC enum.Enum enum.IntEnum enum.Flag
    enum.IntFlag enum.StrEnum equinox.Module flax.linen.Module flax.nnx.Module flax.nnx.Object
    flax.nnx.Param flax.nnx.Variable flax.struct.PyTreeNode haiku.Module
    """
)
"""Classes without hooks for derived classes, except for what JAX must know."""

RULES = frozenset(
    {"defjvp", "defjvps", "defvjp", "def_vmap", "def_partition", "def_abstract_eval", "def_impl"}
)
"""Methods that give a custom function its rules, and have no other effect."""

PLOTS = "draws plots"
_NOT_WORK = ("unittest.mock", "pytest.mark", "pytest.fixture", "urllib.parse", "matplotlib.use")


def _by_name(reasons: Mapping[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in reasons.items() for name in names.split()}


_WORK_PREFIXES = _by_name(
    {
        "starts a process": "subprocess. multiprocessing.",
        "makes a profile": "jax.profiler.",
        "uses the network": """
            urllib. requests. httpx. http. socket. ftplib. smtplib. wandb. mlflow. huggingface_hub.
            jax.distributed.
        """,
        PLOTS: """
            matplotlib. seaborn. plotly. bokeh. altair. IPython.display. mediapy. treescope.
            graphviz.
        """,
        "loads data": """
            datasets.load_dataset tensorflow_datasets.load tensorflow_datasets.builder
            torchvision.datasets. keras.datasets. tensorflow.keras.datasets.
            sklearn.datasets.fetch_ kagglehub. gdown.
        """,
        "runs tests": "unittest. pytest. doctest.",
    }
)
_WORK = _by_name(
    {
        "starts a process": "os.system os.popen os.fork os.kill os.startfile",
        "waits": "time.sleep",
        "ends the process": "os._exit os.abort",
        "runs the program": """
            absl.app.run fire.Fire tyro.cli typer.run hydra.main uvicorn.run
        """,
    }
)
_PROGRESS = frozenset({"tqdm", "trange", "notebook_tqdm"})


def is_pure(name: str) -> bool:
    """Return whether a function, by its full name, has no side effects and is deterministic."""
    if name.startswith(_IMPURE):
        return False
    return name in _PURE_NAMES or name.startswith(_PURE)


def is_wrapper(name: str) -> bool:
    """Return whether a function, by its full name, only wraps its arguments."""
    package, _, attributes = name.partition(".")
    if name in _WRAPPERS_HERE:
        return True
    return package in _WRAPPING_PACKAGES and attributes.rpartition(".")[2] in _WRAPPERS


def keeps_state(name: str) -> bool:
    """Return whether the function's result keeps state between its calls, as `lru_cache` does."""
    return name.rpartition(".")[2] in _STATEFUL


def is_jit(name: str) -> bool:
    """Return whether the function's result compiles when it is called."""
    return is_wrapper(name) and name.rpartition(".")[2] in _JITS


def work(name: str) -> str:
    """Return why a function, by its full name, must not run on a hover; empty if it may."""
    if name.startswith(_NOT_WORK):
        return ""
    if name in _WORK:
        return _WORK[name]
    return next((why for prefix, why in _WORK_PREFIXES.items() if name.startswith(prefix)), "")


def is_progress(name: str) -> bool:
    """Return whether a function shows the progress of a long loop."""
    return name.rpartition(".")[2] in _PROGRESS
