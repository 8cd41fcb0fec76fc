"""The numbered items of the paper: the claims about each, or why it cannot be checked by computation."""

ITEMS: dict[str, tuple[str, ...] | str] = {}
