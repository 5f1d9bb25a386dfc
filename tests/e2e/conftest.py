"""The real MPI of the wheel, for the miniature to install."""

from tests.core.conftest import wheel_copy

__all__ = ["wheel_copy"]
