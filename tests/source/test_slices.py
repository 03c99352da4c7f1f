"""What is executed before a function is traced, what is left out without a word, and what is left
out and named.
"""

from __future__ import annotations

import sys

import pytest

from jaxsight.source.module import Module
from jaxsight.source.slicing.slices import Slice, slice_for


def slice_of(text: str, *names: str) -> Slice:
    return slice_for(Module.parse(text), names or ("f",))


def assert_slice(text: str, *names: str) -> None:
    """The slice of `f` (or `names`) is the lines marked `#+` with all that belongs to their
    statements.
    """
    module = Module.parse(text)
    wanted = [chunk.text for chunk in module.chunks if "#+" in chunk.text]
    assert [c.text for c in slice_for(module, names or ("f",)).chunks] == wanted


def left_out(text: str, *names: str) -> list[str]:
    """What the slice of `f` (or `names`) says is not run."""
    return [caveat.reason for caveat in slice_of(text, *names).caveats]


def test_names_are_followed_transitively() -> None:
    assert_slice("""
import jax  #+
import numpy as np  #+
SCALE = 2  #+
OTHER = 3
def helper(x):  #+
    return x * SCALE
def unused(x):
    return x * OTHER
def f(x):  #+
    return jax.jit(helper)(x)
""")


def test_all_imports_run_and_so_does_what_may_do_anything() -> None:
    assert_slice("""
import jax  #+
import jax.numpy as jnp  #+

from my_jax_utils import show_hlo_info  #+
import numpy as np  #+

x = jnp.zeros((1024*128,2))  #+

def kvec_mesh(N):  #+
    return jnp.stack((jnp.arange(0, N), jnp.arange(0, N)), axis=-1)

def f_sum_jax(x):  #+
    kvm = kvec_mesh(len(x))
    return x * 2 + jnp.sum(kvm * x, axis=1, keepdims=True)

def f_other(x):
    return x

show_hlo_info(jax.jit(f_sum_jax), x, width=500)  #+
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


SCRIPT = """
import jax  #+
import jax.numpy as jnp  #+
def init(): return jnp.zeros(3)  #+
@jax.jit
def train(p): return p + 1
params = init()  #+
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
"""


def test_what_a_script_does_with_its_functions_is_not_executed() -> None:
    assert_slice(SCRIPT)


def test_training_loops_are_named_where_they_may_change_what_is_used() -> None:
    assert left_out(SCRIPT) == [
        (
            "`for step in range(1000):` was not run (loop that calls compiled functions) "
            "and may change `params` and `step`"
        ),
        "`while True:` was not run (loop that calls compiled functions) and may change `params`",
    ]
    assert left_out(SCRIPT, "init") == []


@pytest.mark.parametrize(
    "statement",
    [
        "subprocess.run(['ls'])",
        "OUT = subprocess.check_output(['ls'])",
        "requests.get('http://x')",
        "plt.plot([1])",
        "time.sleep(3)",
    ],
)
def test_work_that_changes_nothing_here_is_left_out_without_a_word(statement: str) -> None:
    text = f"import subprocess, time, requests\nimport matplotlib.pyplot as plt\n{statement}\ndef f(x): return x\n"
    assert all(statement != chunk.text for chunk in slice_of(text).chunks)
    assert left_out(text) == []


def test_work_that_may_change_anything_is_named() -> None:
    text = """
import subprocess
import helper
CFG = {"a": 1}
def main():
    helper.prepare(CFG)
    subprocess.run(["ls"])
main()
def f(x):
    return x
"""
    assert left_out(text) == ["`main()` was not run (starts a process) and may change anything"]


def test_what_uses_what_was_not_run_is_left_out_too() -> None:
    text = """
import subprocess
done = subprocess.run(["ls"])
OUT = done.returncode + 1
def f(x):
    return x * OUT
"""
    assert left_out(text) == [
        "`OUT = done.returncode + 1` was not run (depends on a skipped statement) and may change `OUT`"
    ]


def test_loops_that_build_are_executed() -> None:
    assert_slice("""
layers = []  #+
for i in range(3):  #+
    layers.append(i)
for i in range(400):  #+
    print(i)
def f(x):  #+
    return x + len(layers)
""")


def test_what_may_change_an_object_runs() -> None:
    assert_slice("""
P = {}  #+
P['w'] = 1  #+
P.update(b=2)  #+
Q = {}  #+
Q['w'] = 1  #+
alias = P  #+
alias['v'] = 4  #+
[part.append(5) for part in P.values()]  #+
total = 0  #+
total += 1  #+
setattr(f, 'a', 1)  #+
with context(): pass  #+
if (n := g()): pass  #+
assert P.pop('w')  #+
def context(): ...  #+
def g(): ...  #+
def h(): ...
def f(x):  #+
    return P
""")


@pytest.mark.parametrize(
    "statement",
    [
        "REG = {}\ndef register(g): REG[g.__name__] = g; return g\n@register\ndef g(x): return x",
        "class Base:\n    def __init_subclass__(cls): REG.append(cls)\nREG = []\nclass A(Base): ...",
        "class Meta(type): ...\nclass A(metaclass=Meta): ...",
        "import plugins",
        "import jax as j\nj.config.update('jax_enable_x64', True)",
        "from jax import config as cfg\n_ = cfg.update('jax_enable_x64', True)",
        "it = iter([1, 2])\nA = next(it)",
        "import numpy as np\nA = float(np.random.randn())",
        "import os\nenv = os.environ\nenv['XLA_FLAGS'] = ''",
        "globals()['K'] = 3.0",
        "import functools\n@functools.lru_cache\ndef g(): return 1\ng()",
        "def note(v): SEEN.append(v)\nSEEN = []\ndef g(a: note('x')): ...",
        "import numpy as np\nA = np.ones(3)\nnp.multiply(A, 2, out=A)",
        "from jax.tree_util import register_pytree_node\nclass P: ...\nregister_pytree_node(P, None, None)",
    ],
)
def test_nothing_that_may_matter_is_left_out(statement: str) -> None:
    text = f"{statement}\ndef f(x): return x\n"
    module = Module.parse(text)
    last = module.chunks[-2]
    assert any(chunk.text == last.text for chunk in slice_for(module, ["f"]).chunks)
    assert left_out(text) == []


def test_whoever_looks_names_up_gets_all_of_them() -> None:
    text = "A = 1\ndef g(x): ...\ndef f(x): return globals()['A']\n"
    assert len(slice_of(text).chunks) == 3
    assert len(slice_of(text.replace("globals()['A']", "x")).chunks) == 1
    assert len(slice_for(Module.parse("A = 1\ndef f(x): ...\n"), ["f"], keep_all=True).chunks) == 2


def test_marks_decide() -> None:
    text = """
train()  # jaxsight: never
# jaxsight: always
other(
  1)
def train(): ...
def other(x): ...
def f(x): return x
"""
    assert [c.text.partition("(")[0] for c in slice_of(text).chunks] == [
        "other",
        "def other",
        "def f",
    ]
    assert left_out(
        text.replace("def train(): ...", "def train(): CFG['a'] = 2").replace(
            "def f(x): return x", "CFG = {}\ndef f(x): return CFG"
        )
    ) == ["`train()` was not run (marked `never`) and may change `CFG`"]


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
with open('a') as handle:  #+
    other = handle.read()
with context() as c:  #+
    size = 3
def context(): ...  #+
def f(x): return impl, size  #+
""")


def test_star_imports_may_stand_for_any_name() -> None:
    found = slice_of("from lib import *\ndef f(x): return helper(x)\n")
    assert [c.binds for c in found.chunks] == [("*",), ("f",)]


def test_all_plain_imports_of_a_package_are_part() -> None:
    assert_slice("""
import jax  #+
import jax.numpy  #+
import jax.experimental.pallas  #+
import os.path  #+
def f(x): return jax.numpy.sum(x)  #+
""")


def test_variables_of_loops_and_comprehensions_need_nothing() -> None:
    assert_slice("""
for i in range(10):  #+
    train(i)
sizes = [i for i in range(3)]  #+
built = []  #+
for i in sizes:  #+
    built.append(i)
def f(x): return built, {k: v for k, v in x}  #+
""")


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Width) -> Depth: pass",
        "x: Width[Depth]",
        "class A:\n    x: Width = 1\n    y: Depth",
    ],
)
def test_annotations_are_read_at_once_whichever_python_the_server_has(text: str) -> None:
    reads = Module.parse(text).chunks[0].statement.reads
    assert (reads.now, reads.later) == ({"Width", "Depth"}, set())


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
        # Which Python never evaluates; before 3.14, its symbol table has the name nevertheless.
        ("x: n = 1", {"n"} if sys.version_info < (3, 14) else set()),
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


def test_what_replaces_the_function_further_down_is_named() -> None:
    text = "def f(x): return x\ndef f(x): return x * 10\n"
    module = Module.parse(text)
    (caveat,) = slice_for(module, ["f"], module.chunks[0]).caveats
    assert caveat.reason == ("`def f(x): return x * 10` was not run: it redefines the name")
    assert slice_for(module, ["f"], module.chunks[1]).caveats == ()


LOOKS = """
import jax
import jax.numpy as jnp
import json
import matplotlib.pyplot as plt
import numpy as np
import unknown
state = unknown.state()
losses = unknown.losses()
def f(x):
    return x * 2
"""


@pytest.mark.parametrize(
    "text",
    [
        "plt.plot(losses / 10, label=f'{losses:.2f}')",
        "plt.plot(losses.mean(axis=0)[1:], state.step)",
        "fig, ax = plt.subplots()\nax.plot(losses)\nfig.savefig('loss.png')",
        """
def draw(values):
    fig, axes = plt.subplots(2, 2)
    axes[0].plot(values)
    image = axes[1].imshow(values)
    fig.colorbar(image, ax=axes[1]).set_label('x')
    plt.gca().set_title('loss')
draw(losses)
""",
    ],
)
def test_what_only_shows_values_is_left_out_without_a_word(text: str) -> None:
    module = LOOKS + text + "\n"
    skipped = text.splitlines()[-1].strip()
    assert not any(skipped in chunk.text and chunk.acts for chunk in slice_of(module).chunks)
    assert left_out(module) == []


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("plt.plot(unknown.advance(losses))", "anything"),
        ("plt.plot(losses.pop())", "anything"),
        ("CFG = {}\nplt.title(CFG.setdefault('a', 1))", "anything"),
        ("def draw(values):\n    ax = unknown.axes()\n    ax.plot(plt.gca())\ndraw(1)", "anything"),
    ],
)
def test_work_that_calls_something_unknown_is_named(text: str, changed: str) -> None:
    (reason,) = left_out(LOOKS + text + "\n")
    assert reason.endswith(f"was not run (draws plots) and may change {changed}")


@pytest.mark.parametrize(
    "statement",
    [
        "os.makedirs('out')",
        "shutil.rmtree('out')",
        "np.savetxt('losses.txt', losses)",
        "with open('out.txt', 'w') as out:\n    out.write(f'{losses}')",
        "def save(path, value):\n    with open(path, 'w') as out:\n        json.dump(value, out)\nsave('a', 1)",
    ],
)
def test_what_writes_files_runs_as_it_is_refused_where_it_does(statement: str) -> None:
    text = f"{LOOKS}import os, shutil\n{statement}\n"
    last = Module.parse(text).chunks[-1]
    assert any(chunk.text == last.text and chunk.acts for chunk in slice_of(text).chunks)
    assert left_out(text) == []
