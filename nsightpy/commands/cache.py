"""cache: what nsightpy keeps of reports."""

from dataclasses import replace
from typing import Annotated

from nsightpy.query import Option
from nsightpy.query.command import command
from nsightpy.store.cache import CacheUsage, cache_usage, clear_cache


@command()
def cache(*, clear: Annotated[bool, Option("Remove all of it.")] = False) -> CacheUsage:
    """Where it is, how many entries, and their size; what is being written now stays."""
    usage = cache_usage()
    if not clear:
        return usage
    files, size = clear_cache()
    return replace(usage, files=files, bytes=size, removed=True)
