"""A listing of a program in the style of Fortran.

The context of this interpreter is the text so far, the depth of loops, and the variables' names.
"""

import collections

import jax

from jaxsight_source.jaxprs.base import Rules

rules = Rules()


class Listing:
    def __init__(self):
        self.depth, self.names = 1, collections.defaultdict(lambda: f"v{len(self.names) + 1}")

    def name(self, atoms):
        return ", ".join(str(a.val) if hasattr(a, "val") else self.names[a] for a in atoms)

    def write(self, text):
        self.lines.append("  " * self.depth + text)

    def body(self, jaxpr):
        for equation in jaxpr.eqns:
            (rules.of(equation.primitive.name) or assignment)(self, equation)


def assignment(listing, equation):
    operands, results = map(listing.name, (equation.invars, equation.outvars))
    listing.write(f"{results} = {equation.primitive.name}({operands})")


@rules("scan")
def loop(listing, equation):
    body, k = equation.params["jaxpr"].jaxpr, f"k{listing.depth}"
    inputs = list(zip(body.invars, equation.invars, strict=True))
    same = lambda pair: pair[0].aval.shape == pair[1].aval.shape  # not cut into steps
    carried = sum(map(same, zip(body.outvars, equation.outvars, strict=True)))
    first = sum(map(same, inputs)) - carried
    carry = listing.name(equation.outvars[:carried])
    listing.write(f"{carry} = {listing.name(equation.invars[first : first + carried])}")
    for inner, outer in inputs:
        listing.names[inner] = listing.name([outer]) + ("" if same((inner, outer)) else f"({k})")
    carries = zip(body.invars[first : first + carried], equation.outvars, strict=False)
    listing.names |= {inner: listing.names[outer] for inner, outer in carries}
    listing.write(f"do {k} = 1, {equation.params['length']}")
    listing.depth += 1
    listing.body(body)
    results = [carry, *(f"{listing.names[y]}({k})" for y in equation.outvars[carried:])]
    listing.write(f"{', '.join(results)} = {listing.name(body.outvars)}")
    listing.depth -= 1
    listing.write("end do")


def fortran(function, *args):
    """Return a function's program as text."""
    jaxpr, listing = jax.make_jaxpr(function)(*args).jaxpr, Listing()
    listing.lines = [f"subroutine {function.__name__}({listing.name(jaxpr.invars)})"]
    listing.body(jaxpr)
    return "\n".join([*listing.lines, f"  return {listing.name(jaxpr.outvars)}"])
