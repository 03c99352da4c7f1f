"""One compact answer about a function, for agents: what is asked, its parts, and their length.

`asking` finds the function and collects what is known, `parts` writes it in rows, which are cut to
a number of characters, as text or as JSON.
"""
