"""Installation: an Open MPI on this box, and how its programs are called."""

from __future__ import annotations

from msgspec import Struct


class Installation(Struct, frozen=True):
    """An MPI in a prefix. Paths are absolute."""

    prefix: str
    release: str
    mpicc: str
    mpirun: str

    @property
    def major(self) -> int:
        """First number of the release: it decides the names of MCA parameters."""
        return int(self.release.partition(".")[0])

    @property
    def parameter_file(self) -> str:
        """The system-wide MCA parameter file of this installation."""
        return f"{self.prefix}/etc/openmpi-mca-params.conf"
