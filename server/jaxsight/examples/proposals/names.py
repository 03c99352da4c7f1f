"""What the names of parameters suggest: the patterns that the rows of `table` match."""

from __future__ import annotations

import re

KEY = re.compile(r"(?:.*_)?(?:key|rng|prng|rng_key|prng_key)")
RNGS = re.compile(r"rngs")
"""The random number streams of flax.nnx."""
QUERY = re.compile(r"q|query|queries|v|value|values")
"""Parameters beside which `key` is an array."""
SCALAR = re.compile(
    r"(?:\w+_)?(?:rate|lr|scale|alpha|beta|gamma|lambda|lambd|lam|lmbda|lambda_|decay|eps|epsilon|"
    r"temperature|temp|momentum|threshold|delta|tol|rtol|atol|rcond|coefficient|coef|factor|radius|"
    r"clip|norm|noise|std|sigma|tau|eta|nu|rho|omega|lower|upper|strength|"
    r"multiplier|step_size|weight_decay|margin|prob|probability|power|ratio|offset|smoothing|"
    r"cutoff)|(?:min|max)_\w+|b1|b2|dt|dt0|t|t0|t1|time|a_min|a_max|limit"
)
