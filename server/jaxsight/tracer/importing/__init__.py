"""Imports of user code: the project's modules, with the editor's texts, and what imported them."""
