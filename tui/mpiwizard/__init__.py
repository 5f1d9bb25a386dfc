"""mpiwizard builds, tunes and proves an Open MPI for the box it runs on."""

__version__ = "0.1.0"
