"""What a stage is handed: the box, the folders, the clock and the recipes. Nothing else varies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from mpiwizard.core.errors import ExitCode, WizardError
from mpiwizard.core.host import Host, RealHost
from mpiwizard.core.i18n import _


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
    def of_person(cls, environment: Mapping[str, str] = os.environ) -> Folders:
        """The folders of the XDG base directory specification for the person with this environment."""

        def base(variable: str, default: str) -> Path:
            given = environment.get(variable, "")
            return (Path(given) if Path(given).is_absolute() else home_folder(environment) / default) / "mpiwizard"

        return cls(
            state=base("XDG_STATE_HOME", ".local/state"),
            cache=base("XDG_CACHE_HOME", ".cache"),
            config=base("XDG_CONFIG_HOME", ".config"),
        )


def home_folder(environment: Mapping[str, str]) -> Path:
    """The person's home: HOME, else that of the account. Raises WizardError (NOT_POSSIBLE_HERE) for neither."""
    import pwd

    given = environment.get("HOME", "")
    if given.startswith("/"):
        return Path(given)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        message = _("The account {number} has no home folder here; set HOME to a folder of yours.")
        raise WizardError(message.format(number=os.getuid()), ExitCode.NOT_POSSIBLE_HERE) from None


def given_path(text: str) -> Path:
    """A path as a person gave it, made absolute, its `~` expanded. Raises WizardError (USAGE)."""
    try:
        return Path(text).expanduser().absolute()
    except (RuntimeError, OSError) as error:  # no such user; a current folder that was removed
        reason = getattr(error, "strerror", "") or str(error)
        message = _("The path {path} leads nowhere ({reason}); give one that starts with /.")
        raise WizardError(message.format(path=text, reason=reason.rstrip(".")), ExitCode.USAGE) from None


class Context(Struct, frozen=True):
    """The surroundings of one start of mpiwizard. `offline` forbids any look at the network.

    `patience` is how many seconds a single probe of the box may take.
    """

    host: Host
    folders: Folders
    clock: Callable[[], float] = time.time
    offline: bool = False
    patience: float = 2.0

    @classmethod
    def of_person(cls, offline: bool = False) -> Context:
        """The real box, the person's folders, the real clock."""
        return cls(RealHost(), Folders.of_person(), offline=offline)

    @classmethod
    def of_recording(cls, folder: Path) -> Context:
        """A recorded box, with the folders and the time it had; the network is not for it."""
        from mpiwizard.core.recordings import RecordedHost, recorded_time

        host = RecordedHost(folder)
        made = recorded_time(folder)
        environment = {"HOME": "/root", **host.environment}
        clock = time.time if made is None else lambda: made
        return cls(host, Folders.of_person(environment), clock, offline=True)


Assumptions = tuple[tuple[str, str], ...]  # what a person says of the platform: pairs such as ("provider", "aws")


class Wishes(Struct, frozen=True, forbid_unknown_fields=True):
    """What the person asked for; an empty string or zero leaves the decision to mpiwizard.

    `source` is one of auto, release, distro, archive. `matters` is one of soon, speed, match, learn.
    `assume` overrules what detection says of the platform.
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
    assume: Assumptions = ()
