"""A sample of files of libraries shows about as much as it did, and what it shows is right."""

from __future__ import annotations

import sys

import pytest

from tools.unprepared import figures
from tools.unprepared.__main__ import QUICK, measured, sample
from tools.unprepared.corpora import CORPORA, Corpus


@pytest.mark.slow
@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.name)
def test_figures_are_not_below_the_stored_ones(corpus: Corpus) -> None:
    before = figures.read()[corpus.name]
    now = figures.figures(measured(corpus, sample(corpus, QUICK), sys.executable))
    print(now.line())
    assert (now.files, now.functions) == (before.files, before.functions)
    assert not [*figures.worse(now, before)]
