"""cache: what nsightpy keeps of reports."""

from typing import Annotated

from nsightpy.query import Option
from nsightpy.query.command import command
from nsightpy.store.cache import CacheUsage, cache_usage, clear_cache


@command()
def cache(*, clear: Annotated[bool, Option("Remove all of it.")] = False) -> CacheUsage:
    """Where it is, how many entries, and their size; what is being written now stays."""
    usage = cache_usage()
    return clear_cache() if clear else usage
