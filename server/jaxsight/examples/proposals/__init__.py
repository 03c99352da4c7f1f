"""Propose example inputs of a function that nothing calls, from its text.

`inference.infer` interprets the function's body on abstract arrays whose ranks and sizes are
unknown (`interpreting`), and reads annotations, docstrings and comments (`prose`). All of this are
`clues`, whose rows decide what kind of thing each parameter is, and `writing` has an example of
each kind. Arguments of constructors and fields go the same way: objects are of the classes that
`sources` finds in the module and in the files that it imports. A proposal names the parameters
whose ranks or structures the text does not tell: it is offered, but not assumed.

`proposal.like_fed` makes unknown data of a call like the arrays that the program passes to models.
Nothing here runs code, and nothing is inferred from calls: these are observed.
"""
