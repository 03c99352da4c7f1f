"""What functions compile to, as facts that are compared: for `jaxsight.lock`, tests and revisions.

`facts.py` takes the facts of one compiled function, `notation.py` writes them as a line and reads
such lines, `differences.py` compares two of them and names causes. Lines of the source are known
for facts that were taken now, not for those that were read, and are never compared. This package
must never compile, or read a text of the user's.
"""
