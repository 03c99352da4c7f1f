"""Counts the operations of a program by primitive.

The context of this interpreter is how often the equations of a jaxpr run.
"""

import collections
import math

import jax

from jaxsight_source.jaxprs.base import Rules

rules = Rules()


class Operations:
    def __init__(self):
        self.times, self.counts = 1, collections.Counter()

    def count(self, jaxpr, times=1):
        before, self.times = self.times, self.times * times
        for equation in jaxpr.jaxpr.eqns:
            (rules.of(equation.primitive.name) or one_for_each_element)(self, equation)
        self.times = before


def one_for_each_element(operations, equation):
    sizes = [math.prod(out.aval.shape) for out in equation.outvars]
    operations.counts[equation.primitive.name] += operations.times * max(sizes, default=0)


@rules("dot_general")
def product(operations, equation):
    left, _ = equation.invars
    (contracted, _), _ = equation.params["dimension_numbers"]
    added = math.prod(left.aval.shape[axis] for axis in contracted)
    result = math.prod(equation.outvars[0].aval.shape)
    operations.counts["dot_general"] += operations.times * 2 * result * added


@rules("broadcast_in_dim", "reshape", "slice", "squeeze", "transpose")
def moves(operations, equation):
    pass


@rules("jit", "pjit", "scan")
def call(operations, equation):
    operations.count(equation.params["jaxpr"], equation.params.get("length", 1))


def operations(function, *args):
    """Return the number of operations by primitive."""
    counter = Operations()
    counter.count(jax.make_jaxpr(function)(*args))
    return dict(counter.counts)
