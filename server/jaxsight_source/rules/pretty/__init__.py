"""Rules of the pretty style, which are tried before those of `lax`."""
