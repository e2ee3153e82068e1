"""A hook of mkdocs: links that lead out of docs/ lead to the repository, where they must lead to something."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]


def on_page_markdown(markdown, page, config, **_):
    folder = Path(config["docs_dir"], page.file.src_uri).parent

    def outside(found):
        link, _, anchor = found[1].partition("#")
        target = (folder / link).resolve()
        if not link or "://" in link or target.is_relative_to(config["docs_dir"]):
            return found[0]
        if not target.exists():
            raise SystemExit(f"{page.file.src_uri}: {link} leads nowhere")
        kind = "tree" if target.is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{target.relative_to(ROOT)}{'#' + anchor if anchor else ''})"

    return re.sub(r"\]\(([^)\s]+)\)", outside, markdown)
