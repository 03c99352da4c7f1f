"""Text for people: amounts, markup, and the text of a workspace made inert.

It depends on nothing, and must never pass text of others on as markup.
"""
