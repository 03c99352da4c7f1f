"""The page of a run: one HTML file that works offline and without its script.

`markup.py` builds elements and escapes all text, `sections.py` the parts of the page, `program.py`
the part of one program, `texts.py` keeps HLO and jaxprs compressed within the size of the page, and
`document.py` puts all together with `style.css` and `script.js`.
"""
