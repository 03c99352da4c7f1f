"""Tasks on the rows of a dataset: questions for models, and scores of their answers.

`task` says what a task is; a module each has one. `selection` chooses the questions of a split,
`predictions` reads what a model answered, and `evaluation` scores it. No code of a dataset or of a
model runs in this process.
"""
