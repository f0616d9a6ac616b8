"""nsightpy sync-waits"""

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command("sync-waits", top_option)
def command() -> None:
    """Rank the calls in which the host waited by how long the device did nothing in them.

    Synchronisations, copies that block, frees. idle_share is the part of the device's window; the
    rest of a call waited for work that was running.
    """
