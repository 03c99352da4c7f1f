"""Quick fixes: candidate edits for findings, a module for each code, and what proves that an edit
helps.

A module `jxNNN` reads text and syntax only and guesses freely: whatever it proposes is applied in
memory, traced, run against the original and compiled before anybody sees it (`verifying`). Nothing
is offered that was not proved, and nothing is proved by looking at the text.
"""
