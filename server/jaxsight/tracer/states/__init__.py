"""What a function updates in place: objects watched around a call, and the libraries that have a
protocol for state.

Nothing here imports a library of the user's: it is reached through `sys.modules` where user code
has imported it.
"""
