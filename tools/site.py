"""Changes the Markdown for the site of `make docs`: links out of docs/ lead to pages of the linked files.

MkDocs calls the two functions whose names begin with ``on_``. The README becomes the first page. A file of the
repository that a document links to becomes a page below ``repository/``, whose text the search leaves out.
"""

import os
import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
LINK: Final = re.compile(r"(\]\()([^)\s#]+)((?:#[^)]*)?\))")
FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
ITEM: Final = re.compile(r" *(?:[-*]|\d+\.) ")
#: Pages with one wide table; they have no table of contents beside it.
WIDE: Final = {"reference/properties.md", "reference/metrics.md"}
#: The search prefers pages by these factors: an operator needs runbooks at night before reasons and figures.
BOOST: Final = [
    (r"runbooks", 8.0),
    (r"(start|operate|disks|quotas|concepts)\.md", 3.0),
    (r"adr/|bench|conform|intern|CHANGE", 0.3),
]
LANGUAGES: Final = {"yml": "yaml", "py": "python", "sh": "bash"}


def place(path: Path) -> str:
    """Returns where a file or folder of the repository stands in the site's sources."""
    if path.is_dir():
        return place(path / "README.md") if (path / "README.md").exists() else place_of_file(path / "index.md")
    return place_of_file(path)


def place_of_file(path: Path) -> str:
    """Returns where a file stands: the README comes first, docs/ as it is, all others below ``repository/``."""
    name = path.relative_to(ROOT).as_posix()
    if name == "README.md":
        return "index.md"
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"repository/{name.removesuffix('.md')}.md"


def linked(text: str, folder: Path) -> list[Path]:
    """Returns the files and folders of the repository to which a text in that folder links."""
    found = [
        Path(os.path.normpath(folder / link[2])) for link in LINK.finditer(FENCE.sub("", text)) if "://" not in link[2]
    ]
    return [path for path in found if path.exists() and path.is_relative_to(ROOT)]


def text_of(path: Path) -> str:
    """Returns the Markdown of a page for a file or a folder of the repository."""
    name = path.relative_to(ROOT).as_posix()
    aside = "---\nsearch:\n  exclude: true\n---\n"
    if path.is_dir():
        inside = sorted(each.relative_to(path).as_posix() for each in path.rglob("*") if shown(each))
        return f"{aside}# {name}/\n\n" + "".join(f"- [{each}]({each})\n" for each in inside)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    language = path.suffix[1:]
    return f"{aside}# {path.name}\n\n`{name}`\n\n~~~~~~~~{LANGUAGES.get(language, language)}\n{text}~~~~~~~~\n"


def shown(path: Path) -> bool:
    """Whether a folder's page lists this file; files that Python and the build leave there are not listed."""
    return path.is_file() and not re.search(r"__pycache__|egg-info|\.pyc$|/\.|/build/", str(path))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the README and, from link to link, each file outside docs/ that a page links to."""
    waiting = [ROOT / "README.md"]
    for file in files.documentation_pages():
        waiting += linked(file.content_string, Path(file.abs_src_path or ROOT).parent)
    while waiting:
        path = waiting.pop()
        path = path / "README.md" if (path / "README.md").is_file() else path
        if path.is_relative_to(ROOT / "docs") or place(path) in files.src_uris:
            continue
        text = text_of(path)
        file = File.generated(config, place(path), content=text)
        file.of = path  # type: ignore[attr-defined]
        files.append(file)
        if path.is_dir() or path.suffix == ".md":
            waiting += linked(text, path if path.is_dir() else path.parent)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links to files into links to their pages, and lists of Git hosts into those of Python's Markdown."""
    origin: Path = getattr(page.file, "of", Path(config.docs_dir) / page.file.src_uri)
    folder = origin if origin.is_dir() else origin.parent
    if page.file.src_uri in WIDE:
        page.meta["hide"] = ["toc"]
    page.meta.setdefault("search", {"boost": boost(page.file.src_uri)})
    here = posixpath.dirname(page.file.src_uri)

    def lead(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / link[2]))
        if "://" in link[2] or not path.exists() or not path.is_relative_to(ROOT):
            return link[0]
        return f"{link[1]}{posixpath.relpath(place(path), here)}{link[3]}"

    return outside_fences(lambda text: lists(LINK.sub(lead, text)), markdown)


def boost(name: str) -> float:
    """Returns how much the search prefers the page; 1.0 for most."""
    return next((value for pattern, value in BOOST if re.search(pattern, name)), 1.0)


def outside_fences(change, markdown: str) -> str:  # type: ignore[no-untyped-def]
    """Returns the text with everything but its fenced blocks changed."""
    parts = re.split(r"(^ *(?:```|~{8}).*?^ *(?:```|~{8})$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if odd % 2 else change(part) for odd, part in enumerate(parts))


def lists(text: str) -> str:
    """Returns the text with a blank line before each list, and with an indent of four where Git hosts need two."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        before = lines[-1] if lines else "\n"
        if ITEM.match(line) and before.strip() and not ITEM.match(before) and not before.startswith(" "):
            lines.append("\n")
        indent = len(line) - len(line.lstrip(" "))
        lines.append(" " * (-indent % 4) + line)
    return "".join(lines)
