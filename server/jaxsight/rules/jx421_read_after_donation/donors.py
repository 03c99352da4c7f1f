"""Functions of a module that donate arguments, by the names that they are called by."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.text.expressions import FunctionNode, dotted
from jaxsight.rules.text.statements import Statement, own_statements
from jaxsight.text.names import bound_in_scope

_JITS = frozenset({"jax.jit", "jit", "jax.pmap", "pmap", "pjit", "pjit.pjit"})
"""`nnx.jit` updates the objects that it is given, so they can be read afterwards."""
TRANSFORMS = frozenset(
    {
        "jit", "pjit", "pmap", "vmap", "grad", "value_and_grad", "jacfwd", "jacrev", "hessian",
        "checkpoint", "remat", "scan", "fori_loop", "while_loop", "cond", "switch", "shard_map",
        "eval_shape", "make_jaxpr", "linearize", "vjp", "jvp", "custom_vjp", "custom_jvp", "map",
        "associative_scan", "filter_jit", "filter_vmap", "filter_grad", "filter_value_and_grad",
    }
)  # fmt: skip
"""What traces the functions that it is given: a call in a trace donates nothing."""


@dataclass(frozen=True, slots=True)
class DonationFacts:
    """What a statement says, whatever the rest of its module says.

    It is remembered with the statement, so that an edit costs the statement that it touches.
    """

    signatures: tuple[tuple[str, tuple[str, ...]], ...]
    """Functions, inner ones too, with their positional parameters."""
    bound: tuple[str, ...]
    """The module's names that it binds, once for each time."""
    called: frozenset[str]
    """What it calls, by dotted names; empty for calls of other expressions."""
    called_by_module: frozenset[str]
    """Those of them that are not in functions or classes."""
    traced: frozenset[str]
    """Names that are given to transformations."""


def facts_of(tree: ast.Module) -> DonationFacts:
    """Return what a statement says."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return DonationFacts(
        tuple(
            (node.name, parameters_of(node))
            for node in ast.walk(tree)
            if isinstance(node, FunctionNode)
        ),
        tuple(bound_in_scope(*tree.body)),
        frozenset(dotted(call.func) for call in calls),
        frozenset(
            dotted(node.func)
            for statement in own_statements(tree.body)
            if not isinstance(statement, FunctionNode | ast.ClassDef)
            for part in ast.iter_child_nodes(statement)
            if not isinstance(part, ast.stmt)
            for node in ast.walk(part)
            if isinstance(node, ast.Call)
        ),
        frozenset(
            argument.id
            for call in calls
            if dotted(call.func).rpartition(".")[2] in TRANSFORMS
            for argument in (*call.args, *(keyword.value for keyword in call.keywords))
            if isinstance(argument, ast.Name)
        ),
    )


def parameters_of(function: FunctionNode | ast.Lambda) -> tuple[str, ...]:
    """Return the names of a function's positional parameters."""
    arguments = function.args
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args))


@dataclass(frozen=True, slots=True)
class Donor:
    """A function that donates arguments."""

    name: str
    """How it is called: `step`, `self.step`."""
    positions: frozenset[int]
    """The positions of the arguments that it donates."""
    keywords: frozenset[str]
    """Their names, where these are known."""


class Donors:
    """What donates in a module, and where it can be called by its name."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._facts = [statement.read(facts_of) for statement in statements]
        self._parameters = dict(
            signature for facts in self._facts for signature in facts.signatures
        )
        self.traced = frozenset(name for facts in self._facts for name in facts.traced)
        """Names of functions that are given to transformations."""
        trees = [statement.tree() for statement in statements if _may_donate(statement)]
        self._any = any(map(_donates, trees))
        count = Counter(name for facts in self._facts for name in facts.bound)
        donors = self._donors_in([node for tree in trees for node in tree.body])
        self.of_module = {name: donor for name, donor in donors.items() if count[name] == 1}

    def __bool__(self) -> bool:
        return self._any

    @property
    def are_called_by_module(self) -> bool:
        """Whether a statement of the module itself may donate something."""
        return any(
            not facts.called_by_module.isdisjoint(self.of_module)
            or ("" in facts.called_by_module and _may_donate(statement))
            for statement, facts in zip(self._statements, self._facts, strict=True)
        )

    def functions(self) -> Iterator[tuple[int, FunctionNode, dict[str, Donor]]]:
        """Yield each function that may donate with the donating functions that it can call.

        The number is that of its top-level statement.
        """
        for number, (statement, facts) in enumerate(
            zip(self._statements, self._facts, strict=True)
        ):
            if _may_donate(statement) or not facts.called.isdisjoint(self.of_module):
                for function, visible in self._inside(statement.tree().body, self.of_module):
                    yield number, function, visible

    def _inside(
        self, body: Sequence[ast.stmt], visible: dict[str, Donor]
    ) -> Iterator[tuple[FunctionNode, dict[str, Donor]]]:
        for node in own_statements(body):
            if isinstance(node, ast.ClassDef):
                yield from self._inside(node.body, visible | self._of_class(node))
            elif isinstance(node, FunctionNode):
                names = {node.arg for node in ast.walk(node.args) if isinstance(node, ast.arg)}
                outer = {key: donor for key, donor in visible.items() if key not in names}
                # What the scope binds once, and what the outer scopes bind.
                count = Counter(bound_in_scope(*node.body))
                inner = {key: donor for key, donor in outer.items() if not count[key]}
                donors = self._donors_in(node.body)
                inner |= {key: donor for key, donor in donors.items() if count[key] == 1}
                yield node, inner
                yield from self._inside(node.body, inner)

    def _donors_in(self, body: Sequence[ast.stmt]) -> dict[str, Donor]:
        """Return the donating functions that a scope binds."""
        donors: dict[str, Donor] = {}
        for node in own_statements(body):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    donor = self._decorated(node)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    donor = self.of_call(call, name)
                case _:
                    continue
            if donor is not None:
                donors[name] = donor
        return donors

    def _of_class(self, node: ast.ClassDef) -> dict[str, Donor]:
        """Return the methods that donate, and the attributes of `self` bound to such functions."""
        donors: dict[str, Donor] = {}
        count: Counter[str] = Counter()
        for method in own_statements(node.body):
            if not isinstance(method, FunctionNode):
                continue
            name = f"self.{method.name}"
            count[name] += 1
            if (donor := self._decorated(method)) is not None:
                static = any(dotted(each) == "staticmethod" for each in method.decorator_list)
                moved = donor.positions if static else {at - 1 for at in donor.positions}
                donors[name] = replace(donor, name=name, positions=frozenset(moved))
            for statement in own_statements(method.body):
                if not isinstance(statement, ast.Assign):
                    continue
                for name in map(dotted, statement.targets):
                    if not name.startswith("self."):
                        continue
                    count[name] += 1
                    if isinstance(statement.value, ast.Call):
                        donor = self.of_call(statement.value, name)
                        if donor is not None:
                            donors[name] = donor
        return {name: donor for name, donor in donors.items() if count[name] == 1}

    def _decorated(self, function: FunctionNode) -> Donor | None:
        """Return the donations of a function by its decorator `jax.jit(donate_argnums=…)`.

        Other decorators around it may change its arguments.
        """
        match [
            decorator
            for decorator in function.decorator_list
            if dotted(decorator) != "staticmethod"
        ]:
            case [ast.Call(func=called, args=arguments, keywords=keywords)]:
                if any(dotted(candidate) in _JITS for candidate in (called, *arguments[:1])):
                    return _donor(function.name, keywords, parameters_of(function))
        return None

    def of_call(self, call: ast.Call, name: str) -> Donor | None:
        """Return the function that `jax.jit(f, donate_argnums=…)` makes."""
        keywords = call.keywords
        if dotted(call.func) not in _JITS:
            match call.func:  # partial(jax.jit, donate_argnums=…)(f)
                case ast.Call(args=[jit], keywords=keywords) if dotted(jit) in _JITS:
                    pass
                case _:
                    return None
        if not call.args:
            return None
        parameters: Sequence[str] = ()
        match call.args[0]:
            case ast.Lambda() as function:
                parameters = parameters_of(function)
            case ast.Name(id=name_of_function):
                parameters = self._parameters.get(name_of_function, ())
        return _donor(name, keywords, parameters)


def _may_donate(statement: Statement) -> bool:
    return "donate_arg" in statement.text


def _donates(tree: ast.Module) -> bool:
    return any(
        keyword.arg in ("donate_argnums", "donate_argnames")
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
    )


def _donor(name: str, keywords: Sequence[ast.keyword], parameters: Sequence[str]) -> Donor | None:
    arguments_by_name = {keyword.arg: keyword.value for keyword in keywords}
    if not {"donate_argnums", "donate_argnames"} & arguments_by_name.keys():
        return None
    numbers = _literals(arguments_by_name.get("donate_argnums"))
    positions = {n if n >= 0 else n + len(parameters) for n in numbers if isinstance(n, int)}
    words = _literals(arguments_by_name.get("donate_argnames"))
    names = {word for word in words if isinstance(word, str)}
    names |= {parameters[at] for at in positions if 0 <= at < len(parameters)}
    positions |= {parameters.index(name) for name in names if name in parameters}
    return Donor(name, frozenset(positions), frozenset(names)) if positions or names else None


def _literals(node: ast.expr | None) -> Iterable[object]:
    if node is None:
        return ()
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ()
    return value if isinstance(value, tuple | list | set) else (value,)
