"""What the name and the annotation of a parameter suggest."""

from __future__ import annotations

import ast
import re

KEY = re.compile(r"(?:.*_)?(?:key|rng|rngs|prng|rng_key|prng_key|seed_key)")
AXIS = re.compile(
    r"(?:.*_)?axis|dim|(?:batch|seq|sequence|time|channel|reduce|reduction|concat|stack|split|scan|"
    r"feature|sort)_dim"
)
AXES = re.compile(r"(?:.*_)?axes")
MAPPED_AXES = re.compile(r"(?:in|out|batch|scan|split)_axes")
DIMENSION_NUMBERS = re.compile(r"(?:.*_)?dimension_numbers")
UNSET = re.compile(r"(?:.*_)?(?:precision|policy)|preferred_element_type|(?:out_)?sharding")
"""Parameters of JAX's functions for which `None` is the usual value."""
QUERY = re.compile(r"q|query|queries|v|value|values")
"""Parameters beside which `key` is an array."""
NORM = re.compile(
    r"(?:.*_)?(?:loss|potential|energy|cost|objective|log_?prob|logp|log_density|norm|reduction|"
    r"logdensity|likelihood|reward|critic|distance|metric|score)(?:_fn|_fun|_func|_function)?"
)
"""Functions that return a scalar."""
SHAPE = re.compile(r"(?:.*_)?(?:shape|strides|dilations?)|kernel_size")
PADDING = re.compile(r"padding")
DTYPE = re.compile(r"(?:.*_)?(?:dtype|d_type)")
TREE = re.compile(
    r"(?:.*_)?(?:params|parameters|weights|tree|pytree|grads|gradients|updates|variables)"
)
MODEL = re.compile(r"model|guide")
MODEL_ARGUMENTS = re.compile(r"(?:model|guide|fn)_args")
MODEL_KEYWORDS = re.compile(r"\w*kwargs")
BOOLEAN = re.compile(
    r"(?:is|has|use|with|should|do|return|apply|enable|keep)_\w+|training|train|deterministic|"
    r"causal|verbose|debug|inference|reverse|keepdims|normalized?|log|holomorphic|has_aux"
)
MASK = re.compile(r"(?:.*_)?mask|pred|condition|cond|done|dones")
INTEGERS = re.compile(
    r"(?:.*_)?(?:ids?|idx|inds?|index|indices|tokens?|segments?|positions?|targets_ids|segment_ids)"
)
COUNT = re.compile(
    r"(?:n|num|number)_\w+|(?:max|min)_\w*(?:len|length|steps?|iter\w*|size|count|depth|tokens|num|"
    r"rank|order|degree|dim|bins?|level|evals?)\w*|n|m|k|i|j|size|length|steps?|(?:max|n)?_?iters?|count|degree|order|orders|"
    r"power|rank|depth|\w+_(?:size|length|steps|iters|count|dims?|features|channels|heads|classes)|"
    r"(?:in|out)_(?:size|features|channels)|features|channels|terms|window"
)
STEP = re.compile(r"(?:.*_)?(?:step_?size|learning_rate)")
SCALAR = re.compile(
    r"(?:\w+_)?(?:rate|lr|scale|alpha|beta|gamma|lambda|lambd|lam|lmbda|lambda_|decay|eps|epsilon|temperature|temp|"
    r"momentum|threshold|delta|tol|rtol|atol|rcond|coefficient|coef|factor|radius|clip|norm|noise|"
    r"dt|dt0|t|t0|t1|time|std|sigma|tau|eta|nu|rho|omega|lower|upper|min|max|minimum|maximum|"
    r"strength|value_scale|multiplier|step_size|weight_decay|margin|prob|probability|power|"
    r"ratio|offset|smoothing)|(?:min|max)_\w+|b1|b2|a_min|a_max|limit|cutoff"
)
VECTOR = re.compile(r"(?:.*_)?(?:v|vec|vector|signal|audio|waveform|taps)")
MATRIX = re.compile(
    r"(?:.*_)?(?:matrix|mat|matrices|cov|covariance|precision_matrix|scale_tril|tril|cholesky|"
    r"gram|kernel_matrix|hessian|hess)"
)
BIAS = re.compile(r"(?:.*_)?bias(?:es)?\d*|b\d*")
IMAGE = re.compile(r"(?:.*_)?(?:images?|imgs?|pixels)")
FUNCTIONS = re.compile(r"(?:.*_)?(?:fns|funs|funcs|functions|branches|callbacks)")
COUNTS = re.compile(r"(?:.*_)?(?:dims|sizes|features|widths|strides|window_dims)")
STRING = re.compile(r"name|label_name|mode|method|\w+_name")
FUNCTION = re.compile(
    r"f|fn|fun|func|function|g|(?:.*_)?(?:fn|fun|func|function|callback|activation|act)|apply|"
    r"loss_fn|vf|vector_field|model|sampler"
)

CONSTRUCTED = {
    "Scope": ("", "CLASS({}, {'params': KEY}, mutable=True)"),
    "GradientTransformation": ("optax", "PREFIX.scale(-0.1)"),
    "GradientTransformationExtraArgs": ("optax", "PREFIX.sgd(0.1)"),
    "Distribution": ("numpyro.distributions", "PREFIX.Normal(0.0, 1.0)"),
    "Module": ("flax.nnx", "PREFIX.Linear(8, 8, rngs=PREFIX.Rngs(0))"),
    "Linear": ("flax.nnx", "PREFIX.Linear(8, 8, rngs=PREFIX.Rngs(0))"),
    "Optimizer": (
        "flax.nnx",
        "PREFIX.Optimizer(PREFIX.Linear(8, 8, rngs=PREFIX.Rngs(0)), optax.sgd(0.1))",
    ),
    "TrainState": (
        "optax",
        "CLASS.create(apply_fn=lambda variables, x: x, params={'w': NUMPY.ones(8)}, "
        + "tx=PREFIX.sgd(0.1))",
    ),
    "AbstractLinearOperator": ("lineax", "PREFIX.MatrixLinearOperator(NUMPY.eye(8))"),
    "AbstractTerm": ("diffrax", "PREFIX.ODETerm(lambda t, y, args: y)"),
}
"""How objects of a library's classes are usually made, by the name of the class.

The first of a pair is the module of `PREFIX`; a class of any module of that name has none.
"""
LIKE = (
    (frozenset({"init", "update"}), "optax", "GradientTransformation"),
    (
        frozenset(
            {"log_prob", "sample", "mean", "batch_shape", "event_shape", "event_dim", "support"}
        ),
        "numpyro.distributions",
        "Distribution",
    ),
)
"""Attributes of objects of libraries that parameters without annotation are likely to be."""
MODULES = {
    "flax.linen": "PREFIX.Dense(8)",
    "flax.nnx": CONSTRUCTED["Module"][1],
    "equinox": "PREFIX.nn.Linear(8, 8, key=KEY)",
}
"""How a module of neural networks is made, by the library of the class `Module`."""

_LITERALS = {
    "int": "2",
    "float": "1.0",
    "complex": "1j",
    "bool": "True",
    "str": "'name'",
    "bytes": "b''",
    "None": "None",
}
_ARRAYS = re.compile(r"\b(?:\w+\.)*(?:Array|ArrayLike|ndarray|Tensor|Numeric|Scalar\w*)\b")
_TREES = re.compile(r"\b(?:\w*PyTree\w*|\w*Params|\w*Updates|\w*ArrayTree|\w*Pytree|Gradients?)\b")
_INTEGERS = re.compile(r"^(?:tp\.|typing\.)?(?:Sequence|tuple|Tuple|list|List)\[int\b")
_SHAPES = re.compile(r"^(?:\w+\.)*Shape$")
_CALLABLES = re.compile(r"^(?:\w+\.)*(?:Callable\b|\w*(?:Fn|Fun|Function)(?:\[.*\])?$)")
_UNION = re.compile(r"^(?:\w+\.)*(?:Union|Annotated|Final)\[(.*)\]$", re.DOTALL)
_TREE_OF = re.compile(r"^(?:\w+\.)*PyTree\[((?:\w+\.)*(?:Abstract|Base)\w+)\]$")
_MAPPINGS = re.compile(r"^(?:\w+\.)*(?:Mapping|MutableMapping|dict|Dict)\b")
_FUNCTION_LISTS = re.compile(r"^(?:\w+\.)*(?:Sequence|list|List|tuple|Tuple|Iterable)\[.*Callable")
_DTYPES = re.compile(r"^(?:\w+\.)*(?:DType\w*|dtype)$", re.IGNORECASE)
_SCALAR = re.compile(r"\b(?:\w*ScalarLike|\w*Scalar|float)\b")
_LISTS = re.compile(r"^(?:\w+\.)*(?:Sequence|list|List|Iterable)\[.*(?:Array|ndarray)")


def kind_of(annotation: str | None) -> str:
    """Return what an annotation says: a word, or the source of a literal after `literal `.

    The words are `array`, `scalar`, `tree`, `shape`, `callable(s)`, `dtype`, `arrays` (a list), and
    `class NAME` for another name; empty if it says nothing.
    """
    text = (annotation or "").strip("'\" ").removeprefix("Optional[").strip()
    first = text.partition(" |")[0].strip()
    if not text or text in ("Any", "object", "typing.Any", "tp.Any"):
        return ""
    if (value := _LITERALS.get(first)) is not None and not _ARRAYS.search(text):
        return f"literal {value}"
    if (choice := first_choice(text)) is not None:
        return f"literal {choice}"
    if (union := _UNION.match(text)) is not None:
        return _of_union(union.group(1))
    if (item := _TREE_OF.match(text)) is not None:
        return f"class {item.group(1)}"
    if _FUNCTION_LISTS.match(text):
        return "callables"
    if _MAPPINGS.match(text):
        return "tree"
    if _CALLABLES.match(text):
        return "callable"
    if _DTYPES.match(first):
        return "dtype"
    if _SHAPES.match(first) or _INTEGERS.match(first):
        return "shape"
    if _LISTS.match(text):
        return "arrays"
    if _TREES.search(text):
        return "tree"
    if _SCALAR.search(text) and not re.search(r"\bArray(?:Like)?\b", text):
        return "scalar"
    if _ARRAYS.search(text):
        return "array"
    if re.fullmatch(r"(?:\w+\.)*[A-Z]\w*(?:\[.*\])?", first):
        return f"class {first.partition('[')[0]}"
    return ""


def _of_union(inside: str) -> str:
    """Return the kind of the first of several annotations that says something."""
    try:
        tree = ast.parse(inside, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    kinds = [kind for part in parts if (kind := kind_of(ast.unparse(part)))]
    kinds = [kind for kind in kinds if kind != "literal None"]
    arrays = [kind for kind in kinds if kind in ("array", "scalar")]
    plain = [kind for kind in kinds if not kind.startswith("class ")]
    return next(iter((*arrays, *plain, *kinds)), "")


def first_choice(annotation: str) -> str | None:
    """Return the first value of a `Literal[...]`."""
    try:
        tree = ast.parse(annotation.partition(" |")[0], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match tree:
        case ast.Subscript(
            value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inside
        ):
            first = inside.elts[0] if isinstance(inside, ast.Tuple) and inside.elts else inside
            return repr(first.value) if isinstance(first, ast.Constant) else None
    return None
