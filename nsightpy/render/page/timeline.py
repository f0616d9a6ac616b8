"""The timeline page inside a report page: as a JSON text, from which a frame is made on demand."""

from __future__ import annotations

import json
import re
from typing import BinaryIO, cast

from nsightpy.render.timeline.page import policy_hashes, write_page
from nsightpy.results.tracks import Timeline

_ENDING = re.compile(r"[<>&]")


def timeline_hashes() -> tuple[str, str]:
    """What the policy of the whole page must allow: the timeline's script and style."""
    return policy_hashes()


def embedded(timeline: Timeline, file: BinaryIO) -> None:
    """Write the timeline's page as one JSON string that cannot end its script element."""
    file.write(b'<script type="application/json" id="timeline-page">"')
    write_page(timeline, cast(BinaryIO, _Escaping(file)))
    file.write(b'"</script>\n')


class _Escaping:
    """A file whose text goes on as the inside of a JSON string."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        text = json.dumps(data.decode(), ensure_ascii=True)[1:-1]
        self._file.write(_ENDING.sub(lambda m: f"\\u{ord(m[0]):04x}", text).encode())
        return len(data)
