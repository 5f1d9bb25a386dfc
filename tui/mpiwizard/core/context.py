"""What a stage is handed: the box, the folders, the clock and the recipes. Nothing else varies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from mpiwizard.core.host import Host, RealHost


class Folders(Struct, frozen=True):
    """Where mpiwizard keeps what is its own. Nothing else is written without consent.

    `state`: runs, session, private package lists. `cache`: downloads, which may be deleted at any
    time. `config`: the person's own recipes.
    """

    state: Path
    cache: Path
    config: Path

    @property
    def runs(self) -> Path:
        return self.state / "runs"

    @property
    def downloads(self) -> Path:
        return self.cache / "downloads"

    @classmethod
    def of_person(cls) -> Folders:
        """The folders of the XDG base directory specification for this person."""
        home = Path.home()

        def base(variable: str, default: Path) -> Path:
            given = os.environ.get(variable, "")
            return (Path(given) if Path(given).is_absolute() else default) / "mpiwizard"

        return cls(
            state=base("XDG_STATE_HOME", home / ".local" / "state"),
            cache=base("XDG_CACHE_HOME", home / ".cache"),
            config=base("XDG_CONFIG_HOME", home / ".config"),
        )


class Context(Struct, frozen=True):
    """The surroundings of one start of mpiwizard. `offline` forbids any look at the network."""

    host: Host
    folders: Folders
    clock: Callable[[], float] = time.time
    offline: bool = False

    @classmethod
    def of_person(cls, offline: bool = False) -> Context:
        """The real box, the person's folders, the real clock."""
        return cls(RealHost(), Folders.of_person(), offline=offline)


class Wishes(Struct, frozen=True, forbid_unknown_fields=True):
    """What the person asked for; an empty string or zero leaves the decision to mpiwizard.

    `source` is one of auto, release, distro, archive. `matters` is one of soon, speed, match, learn.
    """

    recipe: str = ""
    release: str = ""
    source: str = "auto"
    archive: str = ""
    sha256: str = ""
    mirror: str = ""
    prefix: str = ""
    jobs: int = 0
    matters: str = "soon"
