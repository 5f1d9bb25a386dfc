"""tarfile with its data filter, also for Python before 3.10.12 and 3.11.4: Debian 12 has 3.11.2."""

from __future__ import annotations

import tarfile

if not hasattr(tarfile, "data_filter"):
    from backports import tarfile  # type: ignore[no-redef]

__all__ = ["tarfile"]
