"""`jaxsight.inverse`: a jaxpr read as a network of equations, through which what is known spreads
in both directions.
"""
