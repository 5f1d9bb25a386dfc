"""The command line: arguments, and the choice of face. All else is imported where it is needed."""

from __future__ import annotations

import io
import os
import sys

from mpiwizard import __version__

TYPE_CHECKING = False  # `typing` alone would cost `--version` a third of its time
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mpiwizard.core.context import Context, Wishes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status (see the README)."""
    _open_missing_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:  # before argparse is imported: this must be as quick as Python itself
        print(f"mpiwizard {__version__}")
        return 0
    from mpiwizard.core.i18n import use_language

    use_language(_option_value(given, "--lang"))
    parser = _parser()
    options = parser.parse_args(given)
    for argument in given:
        if not _is_text(argument):
            parser.error(_unreadable(argument))
    return _run(options)


def _is_text(argument: str) -> bool:
    """False for bytes that are no characters: a plan is JSON and could not hold them."""
    return not any("\udc80" <= character <= "\udcff" for character in argument)


def _unreadable(argument: str) -> str:
    from mpiwizard.core.i18n import _

    return _("{argument} holds bytes that are no text in this language setting; rename what it names").format(
        argument=repr(argument)
    )


def _run(options: argparse.Namespace) -> int:
    from mpiwizard.core.errors import ExitCode, WizardError

    try:
        from mpiwizard.plain import commands

        if options.verb == "interface":
            _require_terminal()
            return _interface(commands.context_of(options), commands.wishes_of(options), "")
        if options.verb == "attach" and not _why_no_interface():
            from mpiwizard.core.context import Wishes

            context = commands.context_of(options)
            return _interface(context, Wishes(), commands.run_of(context, options.run).id)
        _end_as_on_control_c()
        status = int(getattr(commands, options.verb)(options))
        sys.stdout.flush()
        return status
    except WizardError as error:
        print(f"mpiwizard: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _abandon_output()  # the reader of our output went away, as `| head` does
        return ExitCode.STEP_FAILED
    except OSError as error:  # a full disk, a folder that is closed to us: the box's fault, not a bug
        print(_refusal(error), file=sys.stderr)
        _abandon_output()
        return ExitCode.STEP_FAILED
    except Exception as error:
        print(_fault_report(error), file=sys.stderr)
        return ExitCode.STEP_FAILED
    finally:
        if surroundings := getattr(options, "context", None):
            surroundings.host.end_commands()  # else Python would wait for a mirror that does not answer


def _interface(context: Context, wishes: Wishes, run_id: str) -> int:
    from mpiwizard.ui.app import run

    return run(context, wishes, run_id)


def _why_no_interface() -> str:
    """Why the full-screen interface cannot be shown here; empty when it can."""
    from mpiwizard.core.i18n import _

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _("this is no terminal")
    term = os.environ.get("TERM", "")
    return _("this one cannot show it (TERM is {term})").format(term=term or "''") if term in ("", "dumb") else ""


def _require_terminal() -> None:
    from mpiwizard.core.errors import ExitCode, WizardError
    from mpiwizard.core.i18n import _

    if reason := _why_no_interface():
        message = _("The interface needs a full terminal, and {reason}; use `mpiwizard run --yes` or see --help.")
        raise WizardError(message.format(reason=reason), ExitCode.USAGE)


def _end_as_on_control_c() -> None:
    """Let the polite signals unwind Python, so that commands are ended and temporary folders removed.

    A signal that whoever started us had ignored, as nohup does, stays so.
    """
    import signal

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _abandon_output() -> None:
    """Send what stdout still holds nowhere, so that Python does not complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refusal(error: OSError) -> str:
    """The sentence for what the system did not allow, which names the file if the system did."""
    from mpiwizard.core.i18n import _

    reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    return _("mpiwizard: the system refused to go on ({reason}); mend that, then give the same command.").format(
        reason=reason
    )


def _fault_report(error: Exception) -> str:
    """The sentence for a fault of mpiwizard itself; the details go into a file, not over the person."""
    import tempfile
    import traceback

    from mpiwizard.core.i18n import _

    with tempfile.NamedTemporaryFile("w", prefix="mpiwizard-fault-", suffix=".txt", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    return _("mpiwizard: an unexpected fault ({kind}: {error}); please report it with the details in {file}.").format(
        kind=type(error).__name__, error=error, file=file.name
    )


def _open_missing_streams() -> None:
    """Give a closed standard stream /dev/null, so that no file we open later takes its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            while (descriptor := os.open(os.devnull, os.O_RDWR)) < number:
                pass
            if descriptor > number:
                os.dup2(descriptor, number)
            setattr(sys, name, os.fdopen(number, mode))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # where the locale lacks a character, as stderr does


def _option_value(arguments: list[str], name: str) -> str:
    """The value of an option that must be known before the parser and its translated texts are built."""
    for position, argument in enumerate(arguments):
        if argument == name and position + 1 < len(arguments):
            return arguments[position + 1]
        if argument.startswith(name + "="):
            return argument.partition("=")[2]
    return ""


def _parser() -> argparse.ArgumentParser:
    import argparse

    from mpiwizard.core.i18n import _

    class Parser(argparse.ArgumentParser):
        """Errors in one sentence with the way to help; exit status 2."""

        def error(self, message: str) -> None:  # type: ignore[override]
            self.exit(2, _("{program}: {message}; see {program} --help\n").format(program=self.prog, message=message))

    top = Parser(
        prog="mpiwizard",
        description=_("Build, tune and prove an Open MPI for this box."),
        epilog=_("Without a command, the full-screen interface starts. Example: mpiwizard run --yes --prefix ~/mpi"),
    )
    top.add_argument("--version", action="version", version=f"mpiwizard {__version__}")
    _add_general(top, "interface")
    _add_wishes(top)
    verbs = top.add_subparsers(metavar=_("COMMAND"), dest="command", parser_class=Parser)

    def verb(name: str, summary: str, example: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = verbs.add_parser(
            name, help=summary, description=summary, epilog=_("Example: {command}").format(command=example)
        )
        _add_general(parser, name)
        return parser

    detect = verb("detect", _("Show what this box is and what that means for MPI."), "mpiwizard detect --json")
    _add_assumptions(detect)
    detect.add_argument(
        "--root",
        metavar="PATH",
        help=_("look at a recorded box, a folder or an archive, instead of this one"),
    )
    shape = detect.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help=_("print all facts as JSON"))
    shape.add_argument("--schema", action="store_true", help=_("print the JSON schema of --json"))
    shape.add_argument("--evidence", action="store_true", help=_("print with each fact what it was read from"))

    capture = verb(
        "capture",
        _("Record what detection reads of this box, without names and addresses, for a report."),
        "mpiwizard capture -o my-box.tar.gz",
    )
    capture.add_argument("-o", "--output", default="", metavar="FILE", help=_("the archive to write"))

    plan = verb(
        "plan", _("Show what would be built and how, without doing it."), "mpiwizard plan --script > build-openmpi.sh"
    )
    _add_wishes(plan)
    form = plan.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=_("print the plan as JSON"))
    form.add_argument("--script", action="store_true", help=_("print the plan as a shell script that can be run"))

    run = verb(
        "run", _("Do all six stages without a screen."), "mpiwizard run --yes --prefix ~/mpi/openmpi --jobs 4"
    )
    _add_wishes(run)
    run.add_argument("--yes", action="store_true", help=_("agree to what `mpiwizard plan` shows; needed"))
    run.add_argument("--json", action="store_true", help=_("print the final report as JSON"))

    runs = verb("runs", _("List all runs with their state."), "mpiwizard runs")
    runs.add_argument("--json", action="store_true", help=_("print the runs as JSON"))

    for name, summary, example in (
        ("attach", _("Watch a run that goes on in the background."), "mpiwizard attach"),
        ("resume", _("Go on with a run that was interrupted, stopped or failed."), "mpiwizard resume"),
        ("stop", _("Stop a run; what is compiled stays for a resume."), "mpiwizard stop"),
    ):
        parser = verb(name, summary, example)
        parser.add_argument("run", nargs="?", default="", metavar="RUN", help=_("which run; the latest if left out"))
        if name == "resume":
            parser.add_argument("--json", action="store_true", help=_("print the final report as JSON"))

    for name, summary in (
        ("tune", _("Measure settings of an installation and keep what helps.")),
        ("validate", _("Prove that an installation works and measure it.")),
    ):
        parser = verb(name, summary, f"mpiwizard {name} --prefix ~/mpi/openmpi-4.1.4")
        _add_prefix(parser)
        _add_assumptions(parser)
        parser.add_argument("--json", action="store_true", help=_("print the result as JSON"))
        if name == "tune":
            parser.add_argument("--undo", action="store_true", help=_("take back all that tuning wrote"))

    verb("doctor", _("Check mpiwizard's own surroundings."), "mpiwizard doctor")

    diagnose = verb(
        "diagnose", _("Find the first error in a log of configure, make or mpirun."), "mpiwizard diagnose make.log"
    )
    diagnose.add_argument("file", metavar="FILE", help=_("a log file, or - for standard input"))

    export = verb("export", _("Print the plan of a run as a shell script."), "mpiwizard export > build-openmpi.sh")
    export.add_argument("run", nargs="?", default="", metavar="RUN", help=_("which run; the latest if left out"))

    uninstall = verb(
        "uninstall",
        _("Remove an installation that mpiwizard made; files changed since are kept."),
        "mpiwizard uninstall --prefix ~/mpi/openmpi-4.1.4 --yes",
    )
    uninstall.add_argument("--prefix", default="", metavar="DIR", help=_("the installation to remove; needed"))
    uninstall.add_argument("--yes", action="store_true", help=_("agree to the removal; needed"))
    return top


def _add_general(parser: argparse.ArgumentParser, verb: str) -> None:
    from mpiwizard.core.i18n import _

    parser.set_defaults(verb=verb)
    parser.add_argument("--lang", default="", help=_("language of all text, where there is a catalogue for it"))
    parser.add_argument("--offline", action="store_true", help=_("do not look for sources on the network"))


def _add_prefix(parser: argparse.ArgumentParser) -> None:
    from mpiwizard.core.i18n import _

    parser.add_argument(
        "--prefix", default="", metavar="DIR", help=_("the installation; if left out, the latest one mpiwizard made")
    )


def _add_assumptions(parser: argparse.ArgumentParser) -> None:
    from mpiwizard.core.i18n import _

    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="WHAT=VALUE",
        help=_("take the platform for another than was found, such as provider=aws; WHAT is layer, virtualisation, "
               "provider or instance"),
    )  # fmt: skip


def _add_wishes(parser: argparse.ArgumentParser) -> None:
    """The options that decide what is built; the same for the interface, plan and run."""
    from mpiwizard.core.i18n import _

    _add_assumptions(parser)
    wishes = parser.add_argument_group(_("what to build; all can be left to mpiwizard"))
    wishes.add_argument("--recipe", default="", metavar="ID", help=_("the recipe, such as wsl2 or aws"))
    wishes.add_argument("--release", default="", metavar="V", help=_("Open MPI's version, such as 5.0.11"))
    wishes.add_argument(
        "--source", default="auto", metavar="KIND", help=_("auto, release, distro or archive (default: auto)")
    )
    wishes.add_argument("--archive", default="", metavar="FILE", help=_("a local source archive of Open MPI"))
    wishes.add_argument("--sha256", default="", metavar="SUM", help=_("the SHA-256 the local archive must have"))
    wishes.add_argument("--mirror", default="", metavar="URL", help=_("a mirror with Open MPI's release folders"))
    wishes.add_argument("--prefix", default="", metavar="DIR", help=_("where to install"))
    wishes.add_argument("--jobs", type=_jobs, default=0, metavar="N", help=_("compilations at the same time"))


def _jobs(text: str) -> int:
    import argparse

    from mpiwizard.core.i18n import _

    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(_("{text} is not a number from 1 to 4096").format(text=repr(text)))
    return int(text)
