"""What functions compile to in a git revision and now.

`tree` writes the files of a revision, `sides` compiles the functions of both, `changes` compares
them, and `report` writes what differs.
"""
