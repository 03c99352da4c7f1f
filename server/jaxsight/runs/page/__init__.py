"""The page of a run: one HTML file that works offline and without its script.

`markup.py` builds elements, escapes all text, and keeps HLO and jaxprs compressed within the size
of the page, `program.py` has the part of one program, and `document.py` the other parts, which it
puts together with `style.css` and `script.js`.
"""
