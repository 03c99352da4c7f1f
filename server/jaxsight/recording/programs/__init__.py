"""What a run of the user's program compiled, collected in its own processes.

`observing/start.py` waits in each Python process until it has imported JAX. Then
`compat/compiling.py` reports each program that JAX lowers and compiles, `collector.py` describes it
(with what it was called with), and `files/appended.py` appends it to a file at once, so a crash
loses nothing. The process that started the run reads these files (`jaxsight.runs`).

Nothing of the program changes: JAX's functions are called with what they are called with, and an
error of ours is logged and ends there. No values of arrays are stored.
"""

LARGEST = 256 << 20
"""Maximum size of the file of a process, in bytes, a choice: tens of thousands of programs."""
ENDING = ".programs"
"""How the name of such a file ends. It has records of the process (`process`), then of each program
(`program`), of errors of ours (`error`), and of the end (`end`)."""
