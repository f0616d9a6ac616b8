"""cache: the exports of binary reports that nsightpy keeps."""

from __future__ import annotations

from dataclasses import replace

from nsightpy.store.cache import CacheUsage, cache_usage, clear_cache


def cache(*, clear: bool = False) -> CacheUsage:
    """Where exports are kept, how many, and their bytes; `clear` removes them and says how many.

    An export that is being made now stays. Raises UsageError.
    """
    usage = cache_usage()
    if not clear:
        return usage
    files, size = clear_cache()
    return replace(usage, files=files, bytes=size)
