"""The hook of mkdocs.yml: makes the pages that come from the code, and checks what was built.

Nothing of what it makes is committed, so that no page can lag behind the code.
"""

import re
from pathlib import Path
from typing import Any

from make_docs import api_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
TOUR = "## The tour\n"
COPIED = {
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
# What a browser would load by itself; links that a reader may follow are no assets.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc\s*=\s*["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\shref\s*=\s*["']?(?:https?:)?//[^>]*>"""
    r"""|@import\s+[^;]*//[^;]*;|url\(\s*["']?(?:https?:)?//[^)]*\)""",
    re.IGNORECASE,
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the pages of docs/ that the navigation does not name."""
    navigation: list[Any] = list(config.nav or [])
    named = set(re.findall(r"[\w/]+\.md", str(navigation)))
    unnamed = [p.name for p in Path(config.docs_dir).glob("*.md") if p.name not in named]
    for entry in navigation:
        if "Guides" in entry:
            entry["Guides"] += sorted(unnamed)
    config.nav = navigation
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that come from the code and from the files beside docs/."""
    pages = {"api.md": api_page()}
    pages |= {page: (ROOT / name).read_text(encoding="utf-8") for page, name in COPIED.items()}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    start, found, rest = readme.partition(TOUR)
    if not found:
        raise PluginError(f"README.md has no heading {TOUR.strip()!r}")
    pages |= {"index.md": start, "tour.md": f"# {TOUR[3:]}{rest}"}
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links between files of the repository become links between pages, or plain file names."""
    markdown = re.sub(r"\]\((?:\./)?docs/", "](", markdown)
    markdown = markdown.replace("](README.md#quick-start)", "](index.md#quick-start)")
    for target, name in COPIED.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}\)", f"]({target})", markdown)
    return re.sub(
        r"\[([^\]]+)\]\((?:\.\./(?!tour)[^)]*|LICENSE|\.github/[^)]*)\)", r"`\1`", markdown
    )


def on_post_build(config: MkDocsConfig) -> None:
    """Fail where a page or a style would load something from elsewhere."""
    built = Path(config.site_dir)
    for path in sorted([*built.rglob("*.html"), *built.rglob("*.css")]):
        loaded = _LOADED.search(path.read_text(encoding="utf-8"))
        if loaded:
            raise PluginError(f"{path.relative_to(built)} loads {loaded[0][:200]}")
