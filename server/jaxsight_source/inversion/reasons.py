"""Why equations are not inverted."""

NO_RULE = "has no inverse"

REASONS = {
    "abs": "maps x and -x to the same result",
    "argmax": "keeps an index and discards the elements",
    "argmin": "keeps an index and discards the elements",
    "ceil": "rounds, so an interval of operands has the same result",
    "clamp": "maps all values outside its bounds to a bound",
    "cummax": "discards the elements that are not a new maximum",
    "cummin": "discards the elements that are not a new minimum",
    "eq": "keeps one bit of its operands",
    "floor": "rounds, so an interval of operands has the same result",
    "ge": "keeps one bit of its operands",
    "gt": "keeps one bit of its operands",
    "imag": "discards the real part",
    "is_finite": "keeps one bit of its operand",
    "le": "keeps one bit of its operands",
    "lt": "keeps one bit of its operands",
    "max": "discards the smaller of its operands",
    "min": "discards the larger of its operands",
    "ne": "keeps one bit of its operands",
    "real": "discards the imaginary part",
    "reduce_and": "keeps one bit of all elements",
    "reduce_max": "keeps the largest element and discards the others",
    "reduce_min": "keeps the smallest element and discards the others",
    "reduce_or": "keeps one bit of all elements",
    "reduce_prod": "multiplies elements, and many operands have the same product",
    "reduce_sum": "adds elements up, and many operands have the same sum",
    "rem": "keeps a remainder, which many operands share",
    "round": "rounds, so an interval of operands has the same result",
    "sign": "discards the magnitude",
    "sort": "forgets the order of its operand",
    "top_k": "discards the smaller elements",
    "while": "runs a number of iterations that its results do not tell",
}
"""Why primitives without a rule are not injective."""
