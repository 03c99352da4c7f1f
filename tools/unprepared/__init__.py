"""How much of files that nobody prepared an editor shows, and whether it is right.

Source distributions of libraries, pinned in `requirements/unprepared.txt`, are unpacked, and their
files opened in place (`corpora.py`, `opened.py`). Functions that use JAX are counted by what they
show, by the origin of their inputs, and by the reason where they show nothing (`figures.py`). What
is shown of those whose program runs here is compared with a real run, which `real_run.py` observes
without jaxsight (`comparing.py`).
"""
