"""A slice does what the whole file does: small modules are executed both ways and their functions
compared.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.source.module import Module
from jaxsight.source.slicing.slices import slice_for

VARIABLES = ("a", "b", "c", "d")
LISTS = ("p", "q")
FUNCTIONS = ("f", "g", "h")

names = st.sampled_from((*VARIABLES, *LISTS))
variables = st.sampled_from(VARIABLES)
lists = st.sampled_from(LISTS)
functions = st.sampled_from(FUNCTIONS)
numbers = st.integers(0, 9).map(str)


def expressions(callees: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Expressions that read one or two names, or call one of the functions."""
    return st.one_of(
        numbers,
        st.sampled_from(callees).map("{}(1)".format) if callees else numbers,
        st.builds("total({}, {})".format, names, numbers),
        st.builds("total({}, {})".format, names, names),
        st.builds("total([{0} for {0} in {1}], {2})".format, variables, lists, names),
        st.builds("(lambda {}: total({}, 1))(2)".format, variables, names),
    )


values = expressions(FUNCTIONS)
bodies = [expressions(FUNCTIONS[number + 1 :]) for number in range(len(FUNCTIONS))]
"""What each function may give back: it calls only those further down the alphabet, so that every
call ends.
"""
definitions = st.one_of(
    *(
        st.builds(f"def {name}(x):\n    return total(x, {{}})".format, body)
        for name, body in zip(FUNCTIONS, bodies, strict=True)
    ),
    *(
        st.builds(
            f"def {name}(x, y={{}}):\n    a = y\n    return total(x, {{}})".format, values, body
        )
        for name, body in zip(FUNCTIONS, bodies, strict=True)
    ),
)
statements = st.one_of(
    definitions,
    st.builds("{} = {}".format, variables, values),
    st.builds("{} += {}".format, variables, values),
    st.builds("{} = [{}]".format, lists, values),
    st.builds("{}.append({})".format, lists, values),
    st.builds("{}[:] = [{}]".format, lists, values),
    st.builds("if {} > 3:\n    {} = {}".format, variables, variables, values),
    st.builds("{}, {} = {}, {}".format, variables, variables, values, values),
    st.builds("{0} = wrap({0})".format, functions),
    st.builds("{} = {}".format, lists, lists),
    st.builds("for {} in {}[:2]:\n    {}.append({})".format, variables, lists, lists, values),
    st.builds("total({}, {})".format, values, values),
)


PRELUDE = """\
def total(*values):
    return sum(sum(flat(v)) for v in values) % 1000
def flat(value):
    return [n for v in value for n in flat(v)][:9] if isinstance(value, list) else [value]
def wrap(function):
    return lambda *args: function(*args) + 1
a = b = c = d = 1
p, q = [], []
def f(x): return x
def g(x): return x + 1
def h(x): return x + 2
"""


def module_text(body: list[str], name: str) -> str:
    """A file whose last function gives what `name` gives. (A loop *below* a function is another
    matter: it does not run.)
    """
    return PRELUDE + "\n".join([*body, f"def last(x): return {name}(x)", ""])


def outcome(texts: list[str]) -> object:
    """What the last function gives after executing the texts."""
    namespace: dict[str, object] = {}
    for text in texts:
        exec(compile(text, "<module>", "exec"), namespace)
    return eval("last(1)", namespace)


@settings(max_examples=300, deadline=None)
@given(st.lists(statements, max_size=9), functions)
def test_a_slice_gives_the_function_that_the_whole_file_gives(body: list[str], name: str) -> None:
    text = module_text(body, name)
    needed = slice_for(Module.parse(text), ["last"])
    assert outcome([chunk.text for chunk in needed.chunks]) == outcome([text])


@settings(max_examples=300, deadline=None)
@given(st.lists(statements, min_size=2, max_size=9), functions, st.data())
def test_results_kept_by_key_are_those_of_executing_anew(
    body: list[str], name: str, data: st.DataObject
) -> None:
    """Two texts whose slices have equal keys do the same."""
    other = list(body)
    at = data.draw(st.integers(0, len(body) - 1))
    match data.draw(st.sampled_from(("move", "drop", "replace"))):
        case "move":
            other.insert(data.draw(st.integers(0, len(body) - 1)), other.pop(at))
        case "drop":
            del other[at]
        case "replace":
            other[at] = data.draw(statements)
    texts = [module_text(lines, name) for lines in (body, other)]
    one, two = (slice_for(Module.parse(text), ["last"]) for text in texts)
    if one.key == two.key:
        assert outcome([c.text for c in one.chunks]) == outcome([c.text for c in two.chunks])
