"""Traces, compiles and runs programs, and describes each as a row. Runs with the user's Python."""
