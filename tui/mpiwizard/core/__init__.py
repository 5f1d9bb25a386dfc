"""Everything mpiwizard knows and decides, without any interface."""
