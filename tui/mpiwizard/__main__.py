"""`python -m mpiwizard` is the same as the command `mpiwizard`."""

from mpiwizard.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
