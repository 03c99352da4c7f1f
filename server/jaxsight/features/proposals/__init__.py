"""Example inputs that jaxsight proposes: to add them, or to see shapes without writing any."""
