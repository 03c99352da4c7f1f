"""Measured times beside estimates: their match with kernels, words, and JSON."""
