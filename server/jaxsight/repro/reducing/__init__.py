"""Makes a repro smaller while its check holds."""
