"""Values as expressions: parameters of equations, arrays, pytrees."""
