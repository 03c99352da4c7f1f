"""What a report has of a function on a target: the panel's data, texts, figures and source.

`cli/reporting/` puts such entries together, and `page/` makes one file of them.
"""
