"""What stands inside a page: data that cannot end its element, code that its policy names."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def script_json(value: Any) -> str:
    """JSON that no text in it can end the script element with."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy_hash(text: str) -> str:
    """How a Content-Security-Policy names an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
