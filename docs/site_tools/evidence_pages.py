"""Fill the pages of evidence with numbers: ``python docs/site_tools/evidence_pages.py`` (``make evidence-pages``).

``docs/NAME.md`` is written by hand, but for what stands between ``<!-- evidence: VALUE -->`` and ``<!-- end -->``: this is a
value of ``docs/evidence/NAME.json``, a record that a benchmark suite writes. A mark may say how its number is formatted, as in
``<!-- evidence: share .0% -->``. The tests compare the pages with what this program would write.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
RECORDS = sorted((DOCS / "evidence").glob("*.json"))
MARK = re.compile(r"(<!-- evidence: (\S+)(?: (\S+))? -->)((?:(?!<!-- evidence).)*?)(<!-- end -->)", re.DOTALL)


def shown(value: Any, form: str) -> str:
    """A value as Markdown: a table and a list are blocks, everything else stands in a line.

    >>> shown(0.973, ".0%"), shown("none", ""), shown(["a", "b"], "")
    ('97%', 'none', '\\n\\n- a\\n- b\\n\\n')
    >>> print(shown({"columns": ["a", "b"], "rows": [["1", "2"]]}, "").strip())
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    if isinstance(value, dict):
        head, *rows = [f"| {' | '.join(cells)} |" for cells in (value["columns"], *value["rows"])]
        value = [head, f"|{'---|' * len(value['columns'])}", *rows]
        return "\n\n" + "\n".join(value) + "\n\n"
    if isinstance(value, list):
        return "\n\n" + "".join(f"- {line}\n" for line in value) + "\n"
    return value if isinstance(value, str) else format(value, form)


def filled(text: str, values: dict[str, Any]) -> str:
    """The text of a page with the present values in its marks.

    >>> filled("at most <!-- evidence: most .1f -->2.0<!-- end --> times", {"most": 3.14})
    'at most <!-- evidence: most .1f -->3.1<!-- end --> times'
    """
    names = [name for _, name, *_ in MARK.findall(text)]
    if len(names) != text.count("<!-- evidence"):
        raise ValueError("a mark is not of the form <!-- evidence: VALUE -->...<!-- end -->")
    if line := re.search("^<!-- evidence[^>]*-->.+", text, re.MULTILINE):
        raise ValueError(f"a paragraph would end before the mark that begins a line: {line[0]}")
    if differ := set(names) ^ set(values):
        raise ValueError(f"each value of the record needs a mark, and each mark a value: {', '.join(sorted(differ))}")
    return MARK.sub(lambda mark: f"{mark[1]}{shown(values[mark[2]], mark[3] or '')}{mark[5]}", text)


def page(record: Path) -> Path:
    """The page of a record."""
    return DOCS / f"{record.stem}.md"


def current(record: Path) -> str:
    """The text of a record's page, filled."""
    return filled(page(record).read_text(encoding="utf-8"), json.loads(record.read_text(encoding="utf-8"))["values"])


if __name__ == "__main__":
    for record in RECORDS:
        try:
            page(record).write_text(current(record), encoding="utf-8")
        except ValueError as error:
            sys.exit(f"{page(record).name}: {error}.")
