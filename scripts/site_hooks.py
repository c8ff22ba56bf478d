"""What `mkdocs build` needs to know of these documents (mkdocs.yml).

The navigation is read from docs/README.md: a heading is a section, a list item that begins with a link is a page. Files outside of docs/ that a
page links to become part of the site. The pages are written as GitHub reads them: what Python-Markdown wants otherwise is changed on the way.
"""
import os
import posixpath
import re

import markdown
from mkdocs.structure.files import File

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
ITEM = re.compile(r"- \[[^\]]+\]\(([^)]+\.md)\)")
LIST = re.compile(r"( *)([-*]|\d+\.) ")


def navigation(text):
    """The sections of docs/README.md, each with its pages."""
    nav = [{"Contents": "README.md"}]
    for line in text.splitlines():
        if line.startswith("## "):
            nav.append({line[3:].strip(): []})
        elif (m := ITEM.match(line)) and isinstance(section := next(iter(nav[-1].values())), list):
            section.append(posixpath.normpath(m[1]).removeprefix("../"))
    return nav


def slug(text, separator):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def on_config(config):
    with open(os.path.join(config["docs_dir"], "README.md"), encoding="utf-8") as f:
        config["nav"] = navigation(f.read())
    config["mdx_configs"]["toc"]["slugify"] = slug
    return config


def outside(page, target):
    """The path below the root of a file that is not in docs/, or None."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path.startswith("docs/") or ":" in target else path


def on_files(files, config):
    root = os.path.dirname(config["docs_dir"])
    for page in [f for f in files if f.is_documentation_page()]:
        with open(page.abs_src_path, encoding="utf-8") as f:
            targets = [m[2] for m in LINK.finditer(f.read())]
        for path in filter(None, (outside(page.src_path, t) for t in targets)):
            if not files.get_file_from_path(path) and os.path.isfile(os.path.join(root, path)):
                files.append(File(path, root, config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_markdown(text, page, config, files):
    here = page.file.src_path

    def inside(m):
        path = outside(here, m[2])
        return m[1] + (posixpath.relpath(path, posixpath.dirname(here) or ".") if path else m[2]) + m[3]

    return "\n".join(spaced(LINK.sub(inside, text).split("\n")))


def spaced(lines):
    """Lists and tables that follow a paragraph at once, and what belongs to an item, as Python-Markdown wants them."""
    before, item, loose = "", False, False # loose: the item has more than one paragraph
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        starts = LIST.match(line)
        if starts and not starts[1]:
            if before and (not item or loose):
                yield ""
            item, loose = True, False
        elif line and indent == 0 and not before:
            item = False
        elif line.startswith("|") and before and not before.startswith("|"):
            yield ""
        loose = loose or item and not line
        if item and indent >= 2 and (not before or starts or before.startswith("    ")):
            line = "  " + line
        yield line
        before = line
