"""What stands for values that a dry run does not have.

`unknown.py` is that of which nothing is known, apart from what the code says of its type
(`partial_types.py`); `united.py` is what two branches leave. `loaders.py` gives
what stands for data that is not there.
"""
