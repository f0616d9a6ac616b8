"""nsightpy inference-steps"""

from nsightpy.cli.options import top_option
from nsightpy.cli.table_command import table_command


@table_command("inference-steps", top_option)
def command() -> None:
    """Steps of vLLM and SGLang as they annotate them: tokens, host time, GPU time, launches."""
