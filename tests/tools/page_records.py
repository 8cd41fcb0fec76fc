"""The committed records of the pages of evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"


def values(page: str) -> dict[str, Any]:
    """What a page shows, by the names of its marks."""
    return json.loads((EVIDENCE / f"{page}.json").read_text())["values"]
