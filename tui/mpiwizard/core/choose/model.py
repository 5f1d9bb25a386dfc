"""Choice: one way to an MPI (recipe x release x source), with the reason for its rank."""

from __future__ import annotations

from msgspec import Struct


class Choice(Struct, frozen=True, omit_defaults=True):
    """One way to an MPI. `available` is False when it cannot be taken here; `why_not` then says why."""

    recipe: str  # id of the recipe, the file name of recipes/platforms/<id>.toml
    release: str  # Open MPI's version, such as 4.1.4
    source: str  # release, distro or archive
    title: str  # what the person gets, in one line
    reasons: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()  # what this choice leaves out
    minutes: float = 0.0  # estimated time until validated, on this machine
    disk: int = 0  # bytes needed while building
    available: bool = True
    why_not: str = ""
    guide: str = ""  # what the guide would have done, and our verdict
    claims: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.recipe}/{self.release}/{self.source}"
