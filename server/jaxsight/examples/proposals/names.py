"""What the names of parameters suggest: the patterns that the rows of `table` match."""

from __future__ import annotations

import re

KEY = re.compile(r"(?:.*_)?(?:key|rng|rngs|prng|rng_key|prng_key|seed_key)")
RNGS = re.compile(r"rngs")
"""The random number streams of flax.nnx."""
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
MODEL_OBJECT = re.compile(r"(?:.*_)?(?:model|net|network|module|mlp|policy|actor|critic)")
OPTIMIZER_STATE = re.compile(r"(?:.*_)?opt(?:imi[sz]er)?_?state")
WIDTHS = re.compile(
    r"(?:(?:layers?|hidden|net|mlp)_)?(?:sizes|widths)|(?:layer|hidden)_(?:dims|units)"
)
MODEL_ARGUMENTS = re.compile(r"(?:model|guide|fn)_args")
MODEL_KEYWORDS = re.compile(r"\w*kwargs")
BOOLEAN = re.compile(
    r"(?:is|has|use|with|should|do|return|apply|enable|keep)_\w+|training|train|deterministic|"
    r"causal|verbose|debug|inference|reverse|keepdims|normalized?|log|holomorphic|has_aux"
)
MASK = re.compile(r"(?:.*_)?mask|pred|condition|cond|done|dones")
INTEGERS = re.compile(
    r"(?:.*_)?(?:senders|receivers|n_nodes?|n_edges?|actions?|ids?|idx|inds?|index|indices|tokens?|segments?|positions?|targets_ids|segment_ids)"
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
INDEX = re.compile(r"(?:.*_)?(?:index|idx|step|pos)")
"""Integers that are single, unless the body says otherwise."""
RANKS = ((VECTOR, 1), (IMAGE, 4))
"""Arrays whose ranks their names tell, if nothing else does."""
INPUTS = re.compile(
    r"(?:batch_)?(?:x|X|inputs?|images?|imgs?|features|logits|predictions)(?:_batch)?"
)
LABELS = re.compile(r"(?:y|labels?|targets?|classes)(?:_batch)?")
"""Arrays with an item for each of the inputs."""
FUNCTIONS = re.compile(r"(?:.*_)?(?:fns|funs|funcs|functions|branches|callbacks)")
COUNTS = re.compile(r"(?:.*_)?(?:dims|sizes|features|widths|strides|window_dims)")
STRING = re.compile(r"name|label_name|mode|method|\w+_name")
FUNCTION = re.compile(
    r"f|fn|fun|func|function|g|(?:.*_)?(?:fn|fun|func|function|callback|activation|act)|apply|"
    r"loss_fn|vf|vector_field|model|sampler"
)
