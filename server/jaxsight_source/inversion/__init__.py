"""`jaxsight.inverse`: a jaxpr as a network through which known values spread in both directions."""
