"""`inverse`: a jaxpr as a network through which known values spread in both directions.

A rule for a primitive of one's own is registered with `inverses`. It gets where the equation is in
the network (`Placed`), and returns a `Solution`, or why there is none (`Blocked`).
"""

from jaxsight_source.inversion.network import Blocked, Placed, Solution, inverses

__all__ = ["Blocked", "Placed", "Solution", "inverses"]
