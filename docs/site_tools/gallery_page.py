"""Write the gallery from a results folder: ``python docs/site_tools/gallery_page.py results``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from docstring_markup import CITED
from PIL import Image

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "images" / "gallery"
WIDTH = 800
"""Pixels of a thumbnail."""
HEAD = """# Gallery

Every figure that `gyrostat reproduce` draws, here from a run of size {size} with seed {seed}. Click on a picture to enlarge it.
The command below a picture draws it at the standard size.
"""


def thumbnail(picture: Path, to: Path) -> None:
    """A small copy of a figure, in a palette of 64 colours."""
    image = Image.open(picture).convert("RGB")
    image = image.resize((WIDTH, round(WIDTH * image.height / image.width)), Image.Resampling.LANCZOS)
    image.quantize(64).save(to, optimize=True)


def source(text: str) -> str:
    """Where a figure is from, with links to papers other than ours, whose links stand above their figures.

    >>> source("Xu 2024, Lemma 20 (Lemma 5.1 of Li and others 2018)")
    'Xu 2024, Lemma 20 (Lemma 5.1 of <a href="https://arxiv.org/abs/1712.09203">Li and others 2018</a>)'
    """
    others = {name: link for name, link in CITED.items() if not re.match("Xu|Xiong|Wang", name)}
    return re.sub("|".join(map(re.escape, others)), lambda m: f'<a href="{others[m[0]]}">{m[0]}</a>', text)


def entry(paper: str, experiment: object, results: Path) -> str:
    """One figure of the gallery."""
    name = experiment.name  # type: ignore[attr-defined]
    file = f"{paper}-{name}.png"
    thumbnail(results / "figures" / paper / f"{name}.png", PICTURES / file)
    picture = (
        f'<a href="images/gallery/{file}"><img src="images/gallery/{file}" alt="{experiment.title}" loading="lazy"></a>'  # type: ignore[attr-defined]
    )
    words = (
        f"{experiment.title}<br><em>{source(experiment.source)}</em><br><code>gyrostat reproduce {paper}/{name}</code>"  # type: ignore[attr-defined]
    )
    return f"<figure>{picture}<figcaption>{words}</figcaption></figure>"


def page(results: Path) -> str:
    """The gallery of the figures that a folder holds."""
    from gyrostat import load_results
    from gyrostat.experiments.registry import PAPERS, find_paper

    found = load_results(results)
    run = found.run(next(iter(found)))
    parts = [HEAD.format(size=run["size"], seed=run["seed"])]
    for name in PAPERS:
        paper = find_paper(name)
        drawn = [each for each in paper.experiments if (results / "figures" / name / f"{each.name}.png").exists()]
        parts += [f"## {paper.title}", *([f"[{paper.link}]({paper.link})"] if paper.link else [])]
        parts += ["\n".join(['<div class="gallery">', *(entry(name, each, results) for each in drawn), "</div>"])]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    (DOCS / "gallery.md").write_text(page(Path(sys.argv[1])))
