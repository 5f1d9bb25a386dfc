"""The one kind of error a person is meant to read, and the exit codes of every command."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means; the README lists the same."""

    DONE = 0
    STEP_FAILED = 1
    USAGE = 2
    BELOW_EXPECTATION = 3
    NOT_POSSIBLE_HERE = 4
    LOCKED = 75
    INTERRUPTED = 130
    TERMINATED = 143


class WizardError(Exception):
    """A failure told in one sentence: what went wrong, where it was seen, what to do now.

    `exit_code` is the status the command ends with.
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.STEP_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
