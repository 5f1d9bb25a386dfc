"""Stage 2, choose: the ways to an MPI on this machine, best first."""
