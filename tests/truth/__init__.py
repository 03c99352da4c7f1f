"""The truth corpus: what jaxsight answers about a module, compared with what importing the module
gives.
"""
