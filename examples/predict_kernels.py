"""Train a model that predicts how many kernels XLA makes of a program, and write its predictions.

pip install "jaxsight[dataset]" scikit-learn
python examples/predict_kernels.py examples/dataset predictions.jsonl
jaxsight dataset eval kernels predictions.jsonl examples/dataset
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer

from jaxsight_dataset import QuestionSet, questions

folder, output = sys.argv[1:]
training = list(questions(QuestionSet("kernels", folder, split="train"), with_answers=True))
asked = list(questions(QuestionSet("kernels", folder, split="test")))

# A program as a bag of its StableHLO operations.
operations = CountVectorizer(token_pattern=r"stablehlo\.\w+|chlo\.\w+|call @\w+|func\.func")
known = operations.fit_transform(question["stablehlo"] for question in training)
unknown = operations.transform(question["stablehlo"] for question in asked)

# The error of a count matters less the more kernels there are: its logarithm is predicted.
counts = np.array([len(question["answer"]) for question in training])
model = RandomForestRegressor(n_estimators=300, min_samples_leaf=2, random_state=0)
model.fit(known, np.log(counts + 1))
predicted = np.rint(np.exp(model.predict(unknown)) - 1).astype(int)

pairs = zip(asked, predicted, strict=True)
lines = [json.dumps({"id": each["id"], "prediction": int(count)}) for each, count in pairs]
Path(output).write_text("\n".join(lines) + "\n")
