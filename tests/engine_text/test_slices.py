"""What is executed before a function is traced, and what never is."""

from __future__ import annotations

import pytest

from jaxsight.engine.module import Module
from jaxsight.engine.slices import Slice, slice_for


def slice_of(text: str, *names: str) -> Slice:
    return slice_for(Module.parse(text), names or ("f",))


def assert_slice(text: str, *names: str) -> None:
    """The slice of `f` (or `names`) is the lines marked `#+` with all that belongs to their statements."""
    module = Module.parse(text)
    wanted = [chunk.text for chunk in module.chunks if "#+" in chunk.text]
    assert [c.text for c in slice_for(module, names or ("f",)).chunks] == wanted


def test_names_are_followed_transitively() -> None:
    assert_slice("""
import jax  #+
import numpy as np
SCALE = 2  #+
OTHER = 3
def helper(x):  #+
    return x * SCALE
def unused(x):
    return x * OTHER
def f(x):  #+
    return jax.jit(helper)(x)
""")


def test_the_seeds_notebook_function_needs_its_helper_and_its_import_only() -> None:
    assert_slice("""
import jax
import jax.numpy as jnp  #+

from my_jax_utils import show_hlo_info
import matplotlib.pyplot as plt
import numpy as np

x = jnp.zeros((1024*128,2)) # Our probe array -- it uses 1MB

def kvec_mesh(N):  #+
    return jnp.stack((jnp.arange(0, N), jnp.arange(0, N)), axis=-1)

def f_sum_jax(x):  #+
    kvm = kvec_mesh(len(x))
    return x * 2 + jnp.sum(kvm * x, axis=1, keepdims=True)

show_hlo_info(jax.jit(f_sum_jax), x, width=500)
""", "f_sum_jax")  # fmt: skip


def test_decorators_defaults_annotations_and_bases_are_needed() -> None:
    assert_slice("""
A = B = C = 1  #+
D = 1  #+
class Base: ...  #+
class Model(Base):  #+
    size: int = D
    def m(self, x=C): ...
def decorate(f): return f  #+
E = 2  #+
@decorate
def f(x: Model, y=A) -> "E":  #+
    return x
""")


def test_what_a_script_does_at_its_end_is_not_executed() -> None:
    assert_slice("""
params = init()  #+
def init(): ...  #+
def train(p): ...
def f(x):  #+
    return x @ params
print(f(1))
f(2).block_until_ready()
for step in range(1000):
    params = train(params)
while True:
    params = train(params)
def main():
    print(f(3))
main()
if __name__ == "__main__":
    params = train(params)
    main()
""")


def test_loops_that_build_what_is_needed_are_executed() -> None:
    assert_slice("""
layers = []  #+
for i in range(3):  #+
    layers.append(i)
for i in range(4):
    print(i)
def f(x):  #+
    return x + len(layers)
""")


def test_changes_of_what_a_name_stands_for_are_part_of_it() -> None:
    assert_slice("""
P = {}  #+
P['w'] = 1  #+
P.update(b=2)  #+
P['c']['d'].e = 3  #+
P.setdefault('e', []).append(4)  #+
Q = {}
Q['w'] = 1
alias = P  #+
alias['v'] = 4  #+
for part in P.values():  #+
    part.append(5)
total = 0  #+
total += 1  #+
def f(x):  #+
    return P, alias, total
""")


def test_rules_of_custom_derivatives_are_part_of_their_function() -> None:
    assert_slice("""
import jax  #+
@jax.custom_vjp  #+
def f(x): ...
def fwd(x): ...  #+
def bwd(r, g): ...  #+
f.defvjp(fwd, bwd)  #+
@jax.custom_jvp
def other(x): ...
@other.defjvp
def other_jvp(p, t): ...
""")
    assert_slice("""
import jax  #+
from functools import partial  #+
@jax.custom_jvp  #+
def f(x): ...
@partial(f.defjvp, symbolic_zeros=True)  #+
def f_jvp(p, t): ...
""")


def test_registrations_are_part_of_what_they_register() -> None:
    assert_slice("""
import jax  #+
class Foo: ...  #+
class Bar: ...
def flatten(x): ...  #+
jax.tree_util.register_pytree_node(Foo, flatten, None)  #+
jax.tree_util.register_pytree_node(Bar, flatten, None)
jax.tree_util.register_dataclass(nodetype=Foo)  #+
jax.debug.print("hello", Foo)
def f(x):  #+
    return Foo(x)
""")
    assert_slice("""
from jax.interpreters import ad  #+
prim = object()  #+
def rule(): ...  #+
ad.primitive_jvps[prim] = rule  #+
def f(x): return prim  #+
""")


def test_the_last_definition_counts_and_earlier_ones_only_if_it_needs_them() -> None:
    assert_slice("""
def g(x): return 1
def g(x): return 2  #+
def f(x): return g(x)  #+
""")
    assert_slice("""
import jax  #+
def g(x): return 1  #+
g = jax.jit(g)  #+
def f(x): return g(x)  #+
""")
    assert_slice("""
def g(x): return 1  #+
if a():  #+
    def g(x): return 2
def a(): ...  #+
def f(x): return g(x)  #+
""")
    assert_slice("""
n = 1  #+
m = n + 1  #+
n = 5  #+
def f(x): return n + m  #+
""")


def test_a_statement_that_calls_sees_what_was_bound_before_it() -> None:
    assert_slice("""
n = 1  #+
def g(): return n  #+
m = g()  #+
n = 2  #+
def f(x): return m + n  #+
""")


def test_try_and_with_and_match_count_as_wholes() -> None:
    assert_slice("""
try:  #+
    import fast as impl
except ImportError:
    impl = None
with open('a') as handle:
    other = handle.read()
with context() as c:  #+
    size = 3
def context(): ...  #+
def f(x): return impl, size  #+
""")


def test_configuration_is_always_part_with_what_it_needs() -> None:
    assert_slice("""
import os  #+
import sys, jax, warnings  #+
import re
os.environ['XLA_FLAGS'] = FLAGS  #+
os.environ.setdefault('A', 'b')  #+
FLAGS = ''  #+
jax.config.update('jax_enable_x64', True)  #+
jax.config.jax_debug_nans = True  #+
sys.path.insert(0, '.')  #+
warnings.filterwarnings('ignore')  #+
environment = {}
environment['a'] = 1
if re.match('a', 'b'): pass
def f(x): return x  #+
""")
    configures = {
        c.text[:7]: c.configures for c in slice_of("import os\nos.environ['A'] = ''\n").chunks
    }
    assert configures == {"import ": False, "os.envi": True}


def test_marked_statements_are_always_part() -> None:
    text = """
setup()  # jaxsight: always #+
# jaxsight: always
other(  #+
  1)
# jaxsight: always

unmarked()
def setup(): ...  #+
def other(x): ...  #+
def f(x): return x  #+
"""
    assert_slice(text)
    assert [c.configures for c in slice_of(text).chunks] == [True, True, False, False, False]


def test_star_imports_are_part_only_if_a_name_is_unknown() -> None:
    text = "from lib import *\nimport jax\ndef f(x): return {}(jax, x)\n"
    assert slice_of(text.format("len")).unknown == ()
    assert next(c.text for c in slice_of(text.format("len")).chunks) == "import jax"
    unknown = slice_of(text.format("helper"))
    assert unknown.unknown == ("helper",)
    assert [c.binds for c in unknown.chunks] == [("*",), ("jax",), ("f",)]


def test_all_plain_imports_of_a_package_are_part() -> None:
    assert_slice("""
import jax  #+
import jax.numpy  #+
import jax.experimental.pallas  #+
import os.path
def f(x): return jax.numpy.sum(x)  #+
""")


def test_variables_of_loops_and_comprehensions_need_nothing() -> None:
    assert_slice("""
for i in range(10):
    train(i)
sizes = [i for i in range(3)]  #+
built = []  #+
for i in sizes:  #+
    built.append(i)
def f(x): return built, {k: v for k, v in x}  #+
""")


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("return n", {"n"}),
        ("n = 1; return n", set()),
        ("return (lambda n: n)(x)", set()),
        ("return [n for n in x]", set()),
        ("return [m for m in n]", {"n"}),
        ("def g(): return n\n    return g", {"n"}),
        ("global n; n = 1", set()),
        ("global n; return n", {"n"}),
        ("def g():\n        nonlocal m\n        m = n\n    m = 1", {"n"}),
        ("class A:\n        n = n", {"n"}),
        ("return f'{n}'", {"n"}),
        ("match x:\n        case n: return m", {"m"}),
        ("match x:\n        case n.a(): return 1", {"n"}),
        ("import n", set()),
        ("return x.n", set()),
        ("return n.m", {"n"}),
        ("n[0] = 1", {"n"}),
        ("x: n = 1", {"n"}),
        ("return lambda: n", {"n"}),
        ("try: pass\n    except n as m: return m", {"n"}),
    ],
)
def test_free_names_of_a_function(body: str, needs: set[str]) -> None:
    text = f"n = 1\nm = 2\ndef f(x):\n    {body}\n"
    assert {name for c in slice_of(text).chunks for name in c.binds} - {"f"} == needs


def test_names_in_string_annotations_are_needed_if_they_are_names() -> None:
    assert_slice("""
class Model: ...  #+
class Other: ...
def f(m: "Model", x: Float[Array, "b Unknown d"]): return m  #+
""")


def test_names_of_examples_are_needed_too() -> None:
    assert_slice(
        "import jax  #+\ndef init(n): return jax  #+\ndef f(x): return x  #+\n", "f", "init"
    )


def test_docstrings_of_the_module_are_part_if_it_reads_them() -> None:
    assert_slice('"""Doc. #+"""\ndef f(x): return __doc__  #+\n')
    assert_slice('"""Doc."""\ndef f(x): return x  #+\n')


def test_broken_chunks_that_are_needed_are_told() -> None:
    text = "def g(x:\n    return x\n\nh = (\n\ndef f(x): return g(x)\n"
    found = slice_of(text)
    assert [c.text for c in found.chunks] == ["def f(x): return g(x)"]
    assert [c.first_line for c in found.broken] == [0]
    assert slice_of("h = (\n\ndef f(x): return x\n").broken == ()


@pytest.mark.parametrize(
    "line", ["import g.a as b, g", "from a import (c, d as g", "g: int = ", "g = ("]
)
def test_a_broken_line_keeps_the_names_that_it_seems_to_bind(line: str) -> None:
    assert len(slice_of(f"{line} ]\ndef f(x): return g\n").broken) == 1


def test_an_overwritten_function_is_sliced_where_it_stands() -> None:
    text = "n = 1\ndef f(x): return n\nn = 2\ndef f(x): return n * 10\nn = 3\n"
    module = Module.parse(text)
    first = slice_for(module, ["f"], module.chunks[1])
    assert [c.text for c in first.chunks] == ["def f(x): return n", "n = 2"]
    last = slice_for(module, ["f"], module.chunks[3])
    assert [c.text for c in last.chunks] == ["def f(x): return n * 10", "n = 3"]


def test_a_rebound_function_that_wraps_itself_is_sliced_with_its_wrapper() -> None:
    text = "import jax\ndef f(x): return x\nf = jax.jit(f)\n"
    module = Module.parse(text)
    assert len(slice_for(module, ["f"], module.chunks[1]).chunks) == 3


def test_long_chains_need_no_recursion() -> None:
    text = (
        "a0 = 0\n"
        + "".join(f"a{i} = a{i - 1}\n" for i in range(1, 3000))
        + "def f(): return a2999\n"
    )
    assert len(slice_of(text).chunks) == 3001


def test_mutual_recursion_is_followed_once() -> None:
    assert_slice("def f(x): return g(x)  #+\ndef g(x): return f(x)  #+\n")
