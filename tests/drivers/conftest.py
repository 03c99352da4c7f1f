"""The session of the drivers' tests is that of the tests of features."""

from tests.features.conftest import project

__all__ = ["project"]
