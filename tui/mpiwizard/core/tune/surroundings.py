"""What the person needs to use the installation: an environment script and a modulefile."""

from __future__ import annotations

import shlex
from pathlib import Path
from string import Template

from mpiwizard.core.files import replace_file
from mpiwizard.core.i18n import _
from mpiwizard.core.installation import Installation
from mpiwizard.core.recipes import recipes_root
from mpiwizard.core.tune.model import Written


def environment_script(installation: Installation) -> Path:
    return Path(installation.own_folder) / "environment.sh"


def modulefile(installation: Installation) -> Path:
    return Path(installation.own_folder) / "modulefiles" / "openmpi" / installation.release


def write_surroundings(installation: Installation) -> tuple[Written, ...]:
    """Write both from their templates in recipes/templates. OSError when the prefix cannot be written."""
    script, module = environment_script(installation), modulefile(installation)
    _fill("environment.sh", script, prefix=shlex.quote(installation.prefix), release=installation.release)
    _fill("modulefile", module, prefix=f"{{{installation.prefix}}}", release=installation.release)
    return (
        Written(
            str(script),
            _("environment script: `. {script}` puts this Open MPI first").format(script=shlex.quote(str(script))),
            undo_with("rm", str(script)),
        ),
        Written(
            str(module),
            _("modulefile: `module use {folder}`, then `module load openmpi/{release}`").format(
                folder=shlex.quote(str(module.parent.parent)), release=installation.release
            ),
            undo_with("rm", str(module)),
        ),
    )


def undo_with(*command: str) -> str:
    """The sentence that tells how to undo."""
    return _("Undo it with `{command}`.").format(command=shlex.join(command))


def _fill(template: str, target: Path, **words: str) -> None:
    text = (recipes_root() / "templates" / template).read_text(encoding="utf-8")
    replace_file(target, Template(text).substitute(words).encode())
