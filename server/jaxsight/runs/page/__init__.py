"""The page of a run: one HTML file that works offline and without its script.

`markup.py` builds elements, escapes all text, and keeps HLO and jaxprs compressed within the size
of the page, `sections.py` has the parts of the page, `program.py` the part of one program, and
`document.py` puts all together with `style.css` and `script.js`.
"""
