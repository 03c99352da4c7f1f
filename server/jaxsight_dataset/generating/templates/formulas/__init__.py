"""Templates of formulas: tables of what people compute from quantities."""
