"""A Markdown page read by a Markdown parser: its headings and the tables under them."""

from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

Table = list[tuple[str, ...]]


@dataclass
class Page:
    """`tables` by the heading that they stand under; a table's first row is its head."""

    headings: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)


def read_page(text: str) -> Page:
    """The page; raises AssertionError where a cell or heading is more than text: a link, an image, HTML, emphasis."""
    page = Page()
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        assert token.type != "html_block", token.content
        if before is None:
            continue
        if before.type == "heading_open":
            page.headings.append(_text(token))
        elif token.type == "table_open":
            assert page.headings[-1] not in page.tables
            page.tables[page.headings[-1]] = []
        elif token.type == "tr_open":
            page.tables[page.headings[-1]].append(())
        elif before.type in ("th_open", "td_open"):
            page.tables[page.headings[-1]][-1] += (_text(token),)
    return page


def _text(inline: Token) -> str:
    children = inline.children or []
    active = [child.type for child in children if child.type != "text"]
    assert not active, f"{active} in {inline.content!r}"
    return "".join(child.content for child in children)
