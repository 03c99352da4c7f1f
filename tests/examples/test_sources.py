"""Where example inputs come from, what wins, and what the tracer is given."""

from __future__ import annotations

from textwrap import dedent

import pytest

from jaxsight.examples import choice
from jaxsight.examples.sets import Examples, ExampleSet, OutsideSet
from jaxsight.wire.messages.inputs import (
    ArraySpec,
    DryCall,
    EntryPoint,
    InputSpec,
    KeySpec,
    TreeSpec,
    ValueSpec,
)
from tests.examples.fixtures import function


def read(source: str, name: str | None = None, **sizes: int) -> Examples:
    return choice.of(function(source, name), sizes=sizes)


def only_set(source: str, name: str | None = None, **sizes: int) -> ExampleSet:
    found = read(source, name, **sizes)
    assert found.problems == ()
    (only,) = found.sets
    return only


def arguments(found: ExampleSet) -> dict[str, InputSpec]:
    return {argument.name: argument.spec for argument in found.arguments}


def f32(*shape: int) -> ArraySpec:
    return ArraySpec("float32", shape)


ATTENTION = '''
def attention(q, k, v, *, causal=True):
    """Scaled dot-product attention.

    Example inputs:
        q, k, v: f32[4, 128, 8, 64]
        causal: True
    Example inputs (decode):                   # further named sets
        q: f32[4, 1, 8, 64]                    # unnamed arguments come from the first set
    Expect (h100): kernels <= 3, temp <= 4 MiB   # a contract
    """
'''


def test_named_sets_take_what_they_do_not_say_from_the_first() -> None:
    first, decode = read(ATTENTION).sets
    whole = f32(4, 128, 8, 64)
    truth = ValueSpec("True", literal=True)
    assert arguments(first) == {"q": whole, "k": whole, "v": whole, "causal": truth}
    assert arguments(decode) == arguments(first) | {"q": f32(4, 1, 8, 64)}
    assert (first.name, first.line, decode.name, decode.line) == ("", 4, "decode", 7)


def test_an_expectation_belongs_to_the_set_above_it() -> None:
    first, decode = read(ATTENTION).sets
    assert first.expects == ()
    (expect,) = decode.expects
    conditions = [(c.metric, c.comparison, c.value) for c in expect.conditions]
    assert (expect.target, conditions) == (
        "h100",
        [("kernels", "<=", 3), ("temp", "<=", 4 * 2**20)],
    )


def test_a_set_may_change_sizes_alone() -> None:
    source = '''
    def f(x):
        """
        Example inputs:
            x: f32[B, D]
            where B=4, D=2 * B
        Example inputs (large):
            where B=64
        """
    '''
    small, large = read(source).sets
    assert arguments(small) == {"x": f32(4, 8)}
    assert arguments(large) == {"x": f32(64, 128)}
    assert large.sizes == (("B", 64), ("D", 128))


def test_where_wins_over_the_settings() -> None:
    source = '''
    def f(x):
        """
        Example inputs:
            x: f32[B, D]
            where B=4
        """
    '''
    found = only_set(source, B=100, D=3, unused=7)
    assert arguments(found) == {"x": f32(4, 3)}
    assert found.sizes == (("B", 4), ("D", 3))


def test_expressions_tell_the_names_that_they_need_from_the_module() -> None:
    source = '''
    def f(state, g, x):
        """
        Example inputs:
            state = init_state(B, [width for width in WIDTHS],   # sizes are names too
                               key=jax.random.key(0))
            g = lambda y: helper(y)
            x: f32[B]
            where B=2
        """
    '''
    found = only_set(source)
    assert found.expressions == ("WIDTHS", "helper", "init_state", "jax")
    assert arguments(found)["state"] == ValueSpec(
        "init_state(B, [width for width in WIDTHS], key=jax.random.key(0))", literal=False
    )


def test_arguments_stand_in_the_order_of_the_parameters() -> None:
    source = '''
    def f(a, b, *rest, c):
        """
        Example inputs:
            c: 3
            *rest: (f32[1], 'x')
            b: 2
            a: 1
        """
    '''
    assert list(arguments(only_set(source))) == ["a", "b", "rest[0]", "rest[1]", "c"]


def test_keyword_arguments_are_given_by_name() -> None:
    source = '''
    def f(**options):
        """
        Example inputs:
            **options: {'scale': f32[], 'mode': 'sum'}
            axis: 0
        """
    '''
    assert arguments(only_set(source)) == {
        "scale": f32(),
        "mode": ValueSpec("'sum'", literal=True),
        "axis": ValueSpec("0", literal=True),
    }


def test_trees_keep_their_shape() -> None:
    source = '''
    def f(params):
        """
        Example inputs:
            params: {'w': f32[2, 3],
                     'rest': (key<fry>[8], None)}
        """
    '''
    rest = TreeSpec("tuple", (KeySpec("fry", (8,)), ValueSpec("None", literal=True)))
    assert arguments(only_set(source)) == {
        "params": TreeSpec("dict", (f32(2, 3), rest), ("'w'", "'rest'"))
    }


def test_each_argument_tells_where_its_example_stands() -> None:
    places = dict(read(ATTENTION).sets[1].places)
    assert (places["q"].start.line, places["q"].start.column) == (8, 11)
    assert (places["k"].start.line, places["k"].start.column) == (5, 17)


def test_a_function_without_section_has_no_examples_and_no_problems() -> None:
    assert read('def f(x):\n    """Example inputs are nice; for example inputs: see below."""') == (
        Examples()
    )


def test_parameters_with_defaults_need_no_section_line() -> None:
    source = '''
    def f(n=3):
        """
        Example inputs:
        """
    '''
    assert only_set(source).arguments == ()


STYLES = {
    "google": """
    Example inputs:
        x: f32[B,
          3]
        n: 2

        where B=4

    Returns:
        y: not an example
    """,
    "google on one line": """
    Example inputs: x, n: f32[4, 3]
    """,
    "numpydoc": """
    Parameters
    ----------
    x : array

    Example inputs
    --------------
    x : f32[B,
        3]
    n : 2

    where B=4

    Returns
    -------
    y : array
    """,
    "reST field": """
    :param x: array
    :Example inputs:
        x: f32[4, 3]
        n: 2
    :returns: y
    """,
    "reST field on one line": """
    :Example inputs: x, n: f32[4, 3]
    :returns: y
    """,
    "reST literal block": """
    Example inputs::

        x: f32[4, 3]
        n: 2

    More text: here.
    """,
    "reST rubric": """
    .. rubric:: Example inputs

        x: f32[4, 3]
        n: 2

    More text: here.
    """,
}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("style", STYLES)
def test_a_section_is_found_in_every_style(style: str, ends: str) -> None:
    source = f'def f(x, n):\n    """Do it.\n{STYLES[style]}"""\n'.replace("\n", ends)
    found = only_set(source)
    assert arguments(found)["x"] == f32(4, 3)
    assert list(arguments(found)) == ["x", "n"]


def test_a_section_may_begin_the_docstring() -> None:
    source = '''
    def f(x):
        """Example inputs:
            x: f32[3]

        Returns:
            y: not an example
        """
    '''
    assert arguments(only_set(source)) == {"x": f32(3)}


MODEL = '''
class Model:
    """A model.

    Example inputs:
        self = Model(width=D)
        x: f32[B, D]
        where B=2, D=4
    """

    def __init__(self, width=3): ...

    def __call__(self, x): ...

    def loss(self, x, y):
        """
        Example inputs:
            y: f32[B]
        Example inputs (wide):
            where D=8
        """

    def needs_more(self, z): ...

    @property
    def size(self): ...

    @classmethod
    def make(cls, n):
        """
        Example inputs:
            n: 3
        """

    @staticmethod
    def helper(x):
        """
        Example inputs:
            x: f32[1]
        """
'''


def test_the_class_gives_what_a_method_does_not_say() -> None:
    self = ValueSpec("Model(width=D)", literal=False)
    assert arguments(only_set(MODEL, "Model.__call__")) == {"self": self, "x": f32(2, 4)}
    plain, wide = read(MODEL, "Model.loss").sets
    assert arguments(plain) == {"self": self, "x": f32(2, 4), "y": f32(2)}
    assert arguments(wide) == {"self": self, "x": f32(2, 8), "y": f32(2)}
    assert wide.sizes == (("B", 2), ("D", 8))
    assert plain.expressions == ("Model",)


def test_the_class_alone_has_methods_traced_that_need_no_more() -> None:
    sources = {
        name: read(MODEL, f"Model.{name}").source
        for name in ("__init__", "__call__", "needs_more", "size")
    }
    assert sources == {
        "__init__": "none",
        "__call__": "class",
        "needs_more": "none",
        "size": "class",
    }


def test_methods_of_the_class_itself_need_no_self() -> None:
    assert list(arguments(only_set(MODEL, "Model.make"))) == ["n"]
    assert list(arguments(only_set(MODEL, "Model.helper"))) == ["x"]


def test_a_wrong_line_of_the_class_is_a_problem_of_its_methods() -> None:
    source = MODEL.replace("f32[B, D]", "flaot32[B, D]")
    for name in ("Model.__call__", "Model.loss"):
        (problem,) = read(source, name).problems
        assert (problem.code, problem.range.start.line) == ("JX902", 6)


def test_a_project_example_serves_a_function_without_section() -> None:
    f = function("def gelu(x, approximate=True): ...")
    found = choice.of(f, sizes={"B": 4}, project="x: f32[B, 2]")
    assert found.source == "project"
    assert arguments(found.sets[0]) == {"x": f32(4, 2)}


def test_a_project_example_may_have_several_sets() -> None:
    f = function("def gelu(x): ...")
    text = "Example inputs:\n    x: f32[2]\nExample inputs (wide):\n    x: f32[9]\n"
    assert [s.name for s in choice.of(f, sizes={}, project=text).sets] == ["", "wide"]


def test_the_functions_own_section_wins_over_the_project() -> None:
    found = choice.of(function(ATTENTION), sizes={}, project="q, k, v: f32[1]")
    assert (found.source, len(found.sets)) == ("docstring", 2)


@pytest.mark.parametrize(
    ("annotation", "spec"),
    [
        ('Float[Array, "B D"]', f32(8, 16)),
        ("\"Float[Array, 'B D']\"", f32(8, 16)),
        ('jt.Int[jax.Array, "B+1 2*D 3"]', ArraySpec("int32", (9, 32, 3))),
        ('Float[Array, "*batch ... #B _ _any rows=4"]', f32(8, 1, 1, 4)),
        ('BFloat16[Array, ""]', ArraySpec("bfloat16", ())),
        ('Bool[Array, "B"] | None', ArraySpec("bool", (8,))),
        ('Optional[UInt8[np.ndarray, "D"]]', ArraySpec("uint8", (16,))),
        ('Float[Float[Array, "D"], "B"]', f32(8, 16)),
        ("PRNGKeyArray", KeySpec("fry", ())),
        ('Key[Array, "B"]', KeySpec("fry", (8,))),
    ],
)
def test_jaxtyping_annotations_describe_arrays(annotation: str, spec: InputSpec) -> None:
    found = read(f"def f(x: {annotation}): ...", B=8, D=16)
    assert found.source == "annotations"
    assert arguments(found.sets[0]) == {"x": spec}


@pytest.mark.parametrize(
    "annotation",
    [
        "jax.Array",
        'Float[Array, "unknown"]',
        'Float[Array, "{n}"]',
        "Float[Array, axes]",
        "list[int]",
    ],
)
def test_other_annotations_give_no_examples_and_no_problems(annotation: str) -> None:
    assert read(f"def f(x: {annotation}): ...", B=8) == Examples()


def test_annotations_fill_in_what_a_section_leaves_out() -> None:
    source = '''
    def f(x: Float[Array, "b d"], n, key: PRNGKeyArray, mask: Bool[Array, "b"] | None = None):
        """
        Example inputs:
            n: 3
            where b=2, d=4
        """
    '''
    assert arguments(only_set(source)) == {
        "x": f32(2, 4),
        "n": ValueSpec("3", literal=True),
        "key": KeySpec("fry", ()),
    }


def test_an_expectation_without_a_section_belongs_to_the_examples_from_elsewhere() -> None:
    source = '''
    def f(x: PRNGKeyArray):
        """Do it.

        Expect (cpu):
            kernels <= 1,
            temp == 0
        """
    '''
    (expect,) = only_set(source).expects
    assert [(c.metric, c.value) for c in expect.conditions] == [("kernels", 1), ("temp", 0)]


def test_positions_count_code_points_and_lines_as_python_does() -> None:
    source = dedent('''
    def f(x):
        """𝒳 ünïcödé \x0c \u2028 one line.

        Example inputs:
            x: {'𝒳': flaot32[3]}
        """
    ''')
    (problem,) = read(source).problems
    start = problem.range.start
    assert source.split("\n")[start.line][start.column :].startswith("flaot32")


CALLED = OutsideSet("program", "as called by `loss`", "x: f32[4]\nn: 3")
RECORDED = OutsideSet("recorded", "recorded", "x: f32[5]\nn: 3")


def test_a_call_that_was_observed_serves_a_function_without_any_other_example() -> None:
    found = choice.of(function("def f(x, n): ..."), sizes={}, outside=[RECORDED])
    (only,) = found.sets
    assert (found.source, found.problems, only.name) == ("recorded", (), "recorded")
    assert arguments(only) == {"x": f32(5), "n": ValueSpec("3", literal=True)}


@pytest.mark.parametrize(
    ("source", "project", "wins"),
    [
        ("def f(x, n): ...", None, "recorded"),
        ("def f(x, n): ...", "x: f32[2]\nn: 1", "project"),
        ("def f(x: Float[Array, '3'], n: Int[Array, '']): ...", None, "annotations"),
        (
            'def f(x, n):\n    """\n    Example inputs:\n        x, n: f32[]\n    """',
            None,
            "docstring",
        ),
    ],
)
def test_recordings_win_over_calls_and_all_that_is_written_wins_over_both(
    source: str, project: str | None, wins: str
) -> None:
    found = choice.of(function(source), sizes={}, project=project, outside=[RECORDED, CALLED])
    assert found.source == wins


DRY_CALL = DryCall(EntryPoint("/p/main.py", "main"), 2)
DRY = OutsideSet("program", "as called in main.py:3", "", dry_call=DRY_CALL)
NESTED = "def main():\n    def step(x, y): ..."


@pytest.mark.parametrize(
    ("source", "name"), [("def f(x, n): ...", "f"), (NESTED, "main.<locals>.step")]
)
def test_a_call_in_a_dry_run_has_all_arguments_also_of_a_nested_function(
    source: str, name: str
) -> None:
    found = choice.of(function(source, name), sizes={}, outside=[DRY])
    (only,) = found.sets
    assert (found.source, found.problems, only.name) == ("program", (), DRY.label)
    assert (only.dry_call, only.arguments) == (DRY_CALL, ())


def test_what_a_dry_run_does_not_know_has_examples() -> None:
    proposed = OutsideSet("proposed", "assumed inputs", "y: f32[4]", dry_call=DRY_CALL)
    found = choice.of(function(NESTED, "main.<locals>.step"), sizes={}, outside=[proposed])
    assert found.sets[0].dry_call == DRY_CALL
    assert arguments(found.sets[0]) == {"y": f32(4)}


def test_a_nested_function_has_no_other_calls() -> None:
    calls = [OutsideSet("recorded", "recorded", "x: f32[4]\ny: f32[4]")]
    assert not choice.of(function(NESTED, "main.<locals>.step"), sizes={}, outside=calls).sets


def test_several_calls_are_sets_to_choose_from() -> None:
    calls = [OutsideSet("recorded", "recorded", f"x: f32[{n}]") for n in (4, 5)]
    found = choice.of(function("def f(x): ..."), sizes={}, outside=calls)
    assert [made.name for made in found.sets] == ["recorded", "recorded 2"]


@pytest.mark.parametrize(
    "text", ["x: f32[5]\nm: 3", "x: f32[5]", "x: nonsense\nn: 3", "", "where B="]
)
def test_a_call_that_no_longer_fits_is_left_out_without_a_word(text: str) -> None:
    calls = [OutsideSet("program", "as called by `g`", text), RECORDED]
    found = choice.of(function("def f(x, n): ..."), sizes={}, outside=calls)
    assert (found.source, found.problems) == ("recorded", ())


def test_a_recorded_call_of_a_method_takes_what_it_lacks_from_the_class() -> None:
    call = OutsideSet("recorded", "recorded", "z: f32[7]")
    found = choice.of(function(MODEL, "Model.needs_more"), sizes={}, outside=[call])
    assert found.source == "recorded"
    assert arguments(found.sets[0])["z"] == f32(7)
