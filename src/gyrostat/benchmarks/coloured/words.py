"""The words of the page of the map that no run changes."""

OPENING: tuple[str, ...] = ("One. Two. Three.",)
SETTING = WHY = LEFT_OUT = ""
