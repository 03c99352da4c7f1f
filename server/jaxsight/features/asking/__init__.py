"""One compact answer about a function, for agents: what is asked, its parts, and their length.

`asking` finds the function and collects what is known, `parts` writes it in rows, and `answer` cuts
the rows to a number of characters, as text or as JSON.
"""
