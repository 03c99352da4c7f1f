"""The notation of example inputs: tokens, values, shapes, expressions and contracts."""
