"""An abstract interpreter of Python source: it runs code on what is known of values, not on values.

It is the one place that knows in which order Python runs code, and by which ways. Statements run in
order; after branches, what holds is what holds after any of them; loops run until an iteration
tells nothing new; `break`, `continue`, `return` and `raise` end a way. This is the construction of
Cousot and Cousot (https://doi.org/10.1145/512950.512973):

* A *state* says what is known at one point of the code. States form a lattice, of which the
  interpreter uses the *join*: what holds whichever of two ways led there. Most states are an
  `Environment`, which has a value for each variable.
* *Transfer functions* say what expressions and assignments do to the state. They are the methods
  that a client overrides: `expression`, `assign`, and the smaller ones after them.

What a client looks for, it notes down while it evaluates. A loop's body is seen several times, so
it may be noted several times.
"""
