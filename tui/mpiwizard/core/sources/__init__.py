"""Where Open MPI's source comes from: the official release, the distribution, or a local archive."""
