"""Everything that leaves a command: printed text, notes, reports of findings, and files."""
