"""Locks that tell who is at work: held by the kernel for a living process, never left behind.

Two per run. `lock` is inherited by every command of the run, so it is held while any part of
the build lives. `worker.lock` is the worker's own. A third, named after the prefix, keeps two runs
from building into one place; a fourth lets one mpiwizard at a time use apt.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from pathlib import Path

_PATIENCE = 1.0  # seconds; a reader that tests the lock holds it for microseconds


def take_lock(path: Path, patience: float = _PATIENCE) -> int | None:
    """Take the lock: its file descriptor, kept open as long as the lock is needed.

    None when it was held for `patience` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > give_up:
                os.close(descriptor)
                return None
            time.sleep(0.02)


def is_locked(path: Path) -> bool:
    """True while somebody holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def prefix_lock(state: Path, prefix: str) -> Path:
    """The file that stands for a prefix; in our own state folder, since the prefix may not exist yet."""
    name = hashlib.sha256(os.path.realpath(prefix).encode()).hexdigest()[:16]
    return state / "prefix-locks" / f"{name}.lock"
