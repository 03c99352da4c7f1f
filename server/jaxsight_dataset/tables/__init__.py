"""Stores rows as Parquet or JSON Lines, describes them in a card, and checks what is stored.

Only Parquet needs pyarrow, of the extra `jaxsight[dataset]`.
"""
