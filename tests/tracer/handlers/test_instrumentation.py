"""Rewriting must never change what a program means, nor which jaxpr JAX makes of it."""

from __future__ import annotations

import ast
import importlib
import inspect
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxsight.rewriting import rewriter
from jaxsight.rewriting.rewriter import Rewriter
from jaxsight.rewriting.survival import SurvivalRewriter
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.chunks import chunk_file
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.locations import locations
from jaxsight_source.compat.staging import open_jaxpr

CHUNK = "0" * 16


def executed(source: str, name: str, *, instrumented: bool, **namespace: Any) -> dict[str, Any]:
    """The namespace after running `source` as a module, with or without observing."""
    recorder = Recorder()
    file = chunk_file(f"/project/{name}.py", CHUNK)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    tree = ast.parse(source)
    if instrumented:
        tree = recorder.instrument(tree, CHUNK, "")
    scope: dict[str, Any] = {
        "__name__": name,
        rewriter.SEEN: recorder.record,
        rewriter.CALLED: recorder.call,
        **namespace,
    }
    exec(compile(tree, file, "exec", dont_inherit=True), scope)
    return scope


class _Erased(ast.NodeTransformer):
    """Takes the recording calls out again."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id=rewriter.SEEN), args=[_, value]):
                return self.visit(value)  # type: ignore[no-any-return]
            case _:
                return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        match node.value:
            case ast.Call(func=ast.Name(id=rewriter.SEEN), args=[_, ast.Name() as name]) if (
                name.lineno,
                name.col_offset,
            ) in self.inserted:
                return None
            case ast.Call(func=ast.Name(id=rewriter.CALLED)):
                return None
            case _:
                return self.generic_visit(node)

    def __init__(self, inserted: set[tuple[int, int]]) -> None:
        self.inserted = inserted


EVERY = 5
"""One file of JAX's in so many is read."""


def sources() -> Iterator[Path]:
    folder = Path(sysconfig.get_path("stdlib"))
    for name in (
        "asyncio",
        "dataclasses.py",
        "typing.py",
        "enum.py",
        "inspect.py",
        "json",
        "test/test_grammar.py",
    ):
        path = folder / name
        yield from sorted(path.glob("*.py")) if path.is_dir() else [path]
    yield from sorted(Path(jax.__file__).parent.glob("_src/*.py"))[::EVERY]
    yield from sorted(Path(jax.__file__).parent.glob("_src/numpy/*.py"))[::EVERY]


@pytest.mark.slow
def test_only_recording_calls_are_added_and_the_result_compiles() -> None:
    checked = 0
    for path in sources():
        if not path.exists():
            continue
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        before = ast.dump(tree, include_attributes=True)
        recording = Rewriter()
        recording.rewrite(tree)
        compile(tree, str(path), "exec", dont_inherit=True)
        inserted = {
            (place.line, place.column)
            for site in recording.sites
            for place in site.ranges
            if place.kind != "expression"
        }
        erased = _Erased(inserted).visit(tree)
        assert ast.dump(erased, include_attributes=True) == before, path
        surviving = SurvivalRewriter(expressions=True)
        surviving.rewrite(ast.parse(text))
        assert surviving.sites == recording.sites, path
        checked += 1
    assert checked > 60


PROGRAMS = {
    "generators": """
def count(n):
    sent = yield n
    while n:
        sent = yield (n, sent)
        n -= 1
    return 'end'
def outer():
    result = yield from count(2)
    yield result
g = outer(); result = [next(g), g.send(1), g.send(2), list(g)]
""",
    "async": """
import asyncio
class Context:
    async def __aenter__(self): return 3
    async def __aexit__(self, *args): return True
async def numbers():
    for i in range(3):
        yield i
async def main():
    total = 0
    async for i in numbers():
        total += i
    async with Context() as three:
        total += three
        raise ValueError
    return total + (await asyncio.sleep(0, 4)), [i async for i in numbers()]
result = asyncio.run(main())
""",
    "classes": '''
class A:
    """doc A"""
    x: int = 1
    y = x + 1
    __private = 5
    def f(self, *, k=2):
        "doc f"
        return self.x + self.__private + k
    @staticmethod
    def s(a): return a
    @classmethod
    def c(cls): return cls.__name__
    @property
    def p(self): return self.x
class B(A):
    def f(self):
        def inner(): return super(B, self).f(k=3)
        return super().f() + inner(), __class__.__name__
b = B(); result = b.f(), b.s(1), b.c(), b.p, A.__doc__, A.f.__doc__, A.y
''',
    "scopes": """
counter = 0
def f():
    global counter
    counter += 1
    local = 1
    def g():
        nonlocal local
        local += 1
        return local
    g(); del g
    return local, [local for local in range(3)], (lambda a, b=local: a + b)(1), {k: v for k, v in zip('ab', [1, 2])}
result = f(), counter
""",
    "bindings": """
def f(a, /, b, *rest, c=3, **kw):
    (x, *y), z = (a, b, c), rest
    x += 1; y[0] += 2
    if (n := len(kw)) > 0: z += (n,)
    with open('/dev/null') as handle: closed = handle.closed
    for i, (j, k) in enumerate([(1, 2), (3, 4)]): pass
    else: i = 9
    try: 1 / 0
    except ZeroDivisionError as error: kind = type(error).__name__
    finally: last = True
    return x, y, z, closed, i, j, k, kind, last, f'{x!r:>{3}} {y=}', x if y else z, not z, a < b < c
result = f(1, 2, 4, 5, k=6)
""",
    "match": """
class P:
    __match_args__ = ('x', 'y')
    def __init__(self, x, y): self.x, self.y = x, y
def f(v):
    match v:
        case P(x=0, y=y): return 'origin', y
        case P(x, y) if x > y: return 'below', x, y
        case {'k': value, **rest}: return value, rest
        case [1, *others] | (2, *others): return others
        case str() as s: return s
        case None | True: return 'singleton'
        case _: return 'other'
result = [f(v) for v in (P(0, 1), P(3, 1), {'k': 1, 'l': 2}, [1, 2, 3], 's', None, 4)]
""",
    "frames": """
import sys
def f(x):
    y = 1
    return sorted(locals()), sys._getframe().f_code.co_name, eval('x + y'), sys._getframe().f_lineno
result = f(3), f.__code__.co_varnames, f.__code__.co_argcount
""",
    "decorated": """
import functools
def twice(g):
    @functools.wraps(g)
    def wrapper(*args): return g(g(*args))
    return wrapper
@twice
def f(x=5): return x + 1
@functools.lru_cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
result = f(1), f.__name__, fib(20)
""",
    "dataclasses": """
import dataclasses, enum, typing
@dataclasses.dataclass(frozen=True)
class D:
    a: int
    b: 'list[int]' = dataclasses.field(default_factory=list)
    def total(self) -> int: return self.a + sum(self.b)
class E(enum.Enum):
    X = 1
    Y = X + 1
class T(typing.NamedTuple):
    a: int = 1
result = D(1, [2]).total(), E.Y.value, T(), typing.get_type_hints(D)
""",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_what_they_did(name: str) -> None:
    plain = executed(PROGRAMS[name], name, instrumented=False)["result"]
    assert repr(executed(PROGRAMS[name], name, instrumented=True)["result"]) == repr(plain)


def test_deeply_nested_expressions_still_compile() -> None:
    source = "def f(x):\n    return " + " + ".join(["x"] * 500) + "\n"
    assert executed(source, "deep", instrumented=True)["f"](1) == 500


f32 = jnp.float32


def struct(*shape: int, dtype: Any = f32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def tree() -> dict[str, Any]:
    return {"w": struct(8, 4), "b": struct(4)}


def of_module(
    name: str, *functions: str
) -> list[tuple[str, str, Callable[..., Any], tuple[Any, ...]]]:
    """Functions of one array, of a library's module."""
    return [(name, function, lambda call, x: call(x), (struct(4, 8),)) for function in functions]


CASES = [
    *of_module(
        "jax._src.nn.functions",
        "relu6", "softplus", "sparse_plus", "soft_sign", "silu", "mish", "log_sigmoid", "elu",
        "leaky_relu", "hard_tanh", "celu", "selu", "gelu", "glu", "squareplus", "hard_sigmoid",
        "hard_silu", "log_softmax", "softmax", "standardize",
    ),
    *of_module("jax._src.numpy.linalg", "svd", "qr", "norm", "pinv"),
    *of_module("jax._src.scipy.special", "gammaln", "erf", "logit", "ndtri", "i0e"),
    ("optax._src.transform", "scale_by_lion", lambda make, p: update(make(), p), (tree(),)),
    ("optax._src.transform", "scale_by_rms", lambda make, p: update(make(), p), (tree(),)),
    ("optax._src.transform", "scale_by_adam", lambda make, p: update(make(), p), (tree(),)),
    ("optax._src.transform", "scale_by_novograd", lambda make, p: update(make(), p), (tree(),)),
    ("optax.transforms._clipping", "clip_by_global_norm", lambda make, p: update(make(1.0), p), (tree(),)),
    ("optax.transforms._clipping", "adaptive_grad_clip", lambda make, p: update(make(1.0), p), (tree(),)),
    ("optax.losses._classification", "softmax_cross_entropy", lambda loss, x: loss(x, x), (struct(4, 8),)),
    ("optax.losses._classification", "ctc_loss", lambda loss, x, n, labels: loss(x, n, labels, n[:, :3]), (struct(2, 5, 7), struct(2, 5), struct(2, 3, dtype=jnp.int32))),
    ("optax.losses._regression", "huber_loss", lambda loss, x: jax.grad(lambda v: loss(v, v).sum())(x), (struct(4, 8),)),
    ("equinox.nn._linear", "Linear", lambda make, k, x: make(8, 3, key=k)(x), (jax.eval_shape(lambda: jax.random.key(0)), struct(8))),
    ("equinox.nn._rnn", "GRUCell", lambda make, k, x: make(8, 3, key=k)(x, jnp.zeros(3)), (jax.eval_shape(lambda: jax.random.key(0)), struct(8))),
    ("equinox.nn._attention", "MultiheadAttention", lambda make, k, x: make(2, 8, key=k)(x, x, x), (jax.eval_shape(lambda: jax.random.key(0)), struct(4, 8))),
    ("equinox.nn._normalisation", "LayerNorm", lambda make, x: make(8)(x), (struct(8),)),
    ("flax.linen.attention", "dot_product_attention", lambda attend, q: attend(q, q, q), (struct(2, 4, 2, 8),)),
    ("flax.linen.pooling", "avg_pool", lambda pool, x: pool(x, (2, 2)), (struct(2, 8, 8, 3),)),
    ("diffrax._misc", "linear_rescale", lambda call, x: call(x, x, x + 1), (struct(8),)),
]  # fmt: skip


def update(optimizer: Any, params: Any) -> Any:
    updates, state = optimizer.update(params, optimizer.init(params), params)
    return updates, state


def again(module: ModuleType, *, instrumented: bool) -> dict[str, Any]:
    """The module run once more under another name of its file."""
    source = inspect.getsource(module)
    namespace = {
        "__package__": module.__package__,
        "__file__": module.__file__,
        "__spec__": module.__spec__,
    }
    return executed(source, module.__name__, instrumented=instrumented, **namespace)


def ranges(jaxpr: Any) -> list[Any]:
    """Of each equation, those of inner jaxprs too: the frames in the chunk that made it, with exact
    columns.
    """
    opened = open_jaxpr(jaxpr)
    out: list[Any] = []
    for equation in opened.eqns:
        out.append([frame for frame in locations(equation) if "§" in frame.file])
        for part in inner_jaxprs(equation):
            out += ranges(part.jaxpr)
    return out


@pytest.mark.parametrize(
    ("name", "function", "use", "args"), CASES, ids=[f"{case[0]}.{case[1]}" for case in CASES]
)
def test_functions_of_libraries_keep_their_jaxpr_and_its_source_ranges(
    name: str, function: str, use: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    pytest.importorskip(name.partition(".")[0])
    module = importlib.import_module(name)

    def traced(*, instrumented: bool) -> Any:
        call = again(module, instrumented=instrumented)[function]
        return jax.make_jaxpr(lambda *given: use(call, *given))(*args)

    plain, observed = traced(instrumented=False), traced(instrumented=True)
    assert str(observed) == str(plain)
    assert ranges(observed) == ranges(plain)
    assert any(ranges(plain)), "nothing came from the module's own text"


def test_doc_and_signature_stay() -> None:
    source = 'def f(x: int, *, y: "str" = "a") -> None:\n    """Doc."""\n    return x\n'
    made = executed(source, "doc", instrumented=True)["f"]
    assert made.__doc__ == "Doc."
    assert str(inspect.signature(made)) == "(x: int, *, y: 'str' = 'a') -> None"
    assert inspect.getsource(made) == source


def test_lines_of_an_error_are_those_of_the_text() -> None:
    source = "def f(x):\n    y = (x +\n         missing)\n    return y\n"
    with pytest.raises(NameError) as caught:
        executed(source, "error", instrumented=True)["f"](1)
    last = caught.value.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    assert last is not None
    position = list(last.tb_frame.f_code.co_positions())[last.tb_lasti // 2]
    assert position == (3, 3, 9, 16)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_type_parameters_stay() -> None:
    source = "type V[T] = list[T]\ndef f[T](x: T) -> V[T]:\n    return [x]\nclass C[T]:\n    def g(self, x: T) -> T:\n        return x\nresult = f(1), C[int]().g(2)\n"
    assert executed(source, "generic", instrumented=True)["result"] == ([1], 2)
