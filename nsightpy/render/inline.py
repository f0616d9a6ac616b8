"""What stands inside a page: its template, data that cannot end its element, code by its hash."""

import base64
import hashlib
import json
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from nsightpy.output.escape import printable


def source(folder: str, name: str) -> str:
    """A file beside the templates of `render/<folder>`."""
    path = resources.files("nsightpy.render") / folder / "html" / name
    return path.read_text(encoding="utf-8")


def template(folder: str, name: str) -> jinja2.Template:
    """A template that escapes every text, and shows it on one line without hidden characters."""

    def finalized(value: Any) -> Any:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return printable(value) if is_text else value

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda part: source(folder, part)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalized,
    )
    return environment.get_template(name)


def script_json(value: Any) -> str:
    """JSON that no text in it can end the script element with."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy_hash(text: str) -> str:
    """How a Content-Security-Policy names an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
