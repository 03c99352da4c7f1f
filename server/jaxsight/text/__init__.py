"""Text for people: amounts, markup, and the text of a workspace made inert. Depends on nothing."""
