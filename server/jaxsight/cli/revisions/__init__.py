"""What functions compile to in a git revision and now.

`tree` writes the files of a revision, `sides` compiles the functions of both, and `report` compares
them and writes what differs.
"""
