"""Troubleshoot: output that was seen becomes a diagnosis."""
