"""Help as one page of rich text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from app.ui.help.sections import HelpEntry, HelpSection
from app.ui.theme import Theme

NOTHING = "Nothing found"


def page(sections: Sequence[HelpSection], theme: Theme) -> str:
    """The sections that have entries; the first of each name is the anchor of that name."""
    parts, named = [], set[str]()
    for section in sections:
        if section.entries:
            anchor = "" if section.name in named else f'<a name="{section.name}"></a>'
            named.add(section.name)
            parts.append(f'<p class="title">{anchor}{escape(section.title)}</p>')
            parts.append(_table(section) if section.name != "words" else _list(section))
    body = "".join(parts) or f'<p class="text">{NOTHING}</p>'
    return f"<style>{_style(theme)}</style>{body}"


def _list(section: HelpSection) -> str:
    return "".join(
        f'<p class="head">{escape(entry.head)}</p><p class="text">{_lines(entry.text)}</p>'
        for entry in section.entries
    )


def _table(section: HelpSection) -> str:
    rows = "".join(
        f'<tr><td class="left" width="38%">{escape(entry.head)}</td>'
        f'<td class="right">{_value(entry)}</td></tr>'
        for entry in section.entries
    )
    return f'<table width="100%" cellspacing="0" cellpadding="0" class="table">{rows}</table>'


def _value(entry: HelpEntry) -> str:
    if entry.path is None:
        return _lines(entry.text)
    link = quote(str(entry.path), safe="")
    links = f'<a href="open:{link}">Open</a> &nbsp; <a href="copy:{link}">Copy</a>'
    return f"{_lines(entry.text)}<br>{links}"


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _style(theme: Theme) -> str:
    colours, grid = theme.palette, round(8 * theme.scale)
    title = theme.sans(1.5).pointSizeF()
    return f"""
        p {{ margin: 0; }}
        a {{ color: {colours.link}; }}
        .title {{ font-size: {title:.2f}pt; font-weight: 600; color: {colours.text};
            margin-top: {2 * grid}px; margin-bottom: {grid}px; }}
        .head {{ font-weight: 600; color: {colours.text}; }}
        .text {{ color: {colours.secondary}; margin-bottom: {grid}px; }}
        .table {{ margin-top: {grid}px; }}
        .left {{ color: {colours.text}; padding-bottom: {grid}px; padding-right: {grid}px; }}
        .right {{ color: {colours.secondary}; padding-bottom: {grid}px; }}
    """
