"""Write the generated pages of the reference: ``python docs/site_tools/reference_pages.py``.

Every public name is on the page of its room. Commands, diagnostics and claims are listed with what they declare. The tests
compare the files with what this program would write.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docstring_markup import in_reference, public_objects, with_linked_papers

FOLDER = Path(__file__).parents[1] / "reference"
ROOMS = {
    "engine": ("Running", "Run an algorithm on a problem, summarise and draw what comes out."),
    "models": ("Models", "How parameters make a matrix."),
    "environments": ("Environments", "What is true everywhere, what varies, and by which law."),
    "measurements": ("Measurements", "How a residual is seen, and the problem made of environments and measurements."),
    "algorithms": ("Algorithms", "The algorithms of the papers by name, and the parts that they are made of."),
    "diagnostics": ("Diagnostics", "What to record along a run, and what to compute from a recorded one."),
    "theory": ("Theory", "What the papers state, as functions, and predictors of what will happen."),
    "estimators": ("Estimators", "scikit-learn estimators for data from several environments and for missing cells."),
    "sources": (
        "Sources",
        "Rows with the labels of their sources, and batches in which every row comes from one source.",
    ),
    "torch": ("PyTorch", "Batches of one environment, amplified steps, and reports on a network."),
    "sweeps": ("Sweeps", "Phase diagrams: any setting as an axis."),
    "experiments": ("Experiments", "The declarations that a paper of your own is made of."),
    "errors": ("Errors", "The one exception, the warning about diverged runs, and fields that check their values."),
}
"""The pages of the reference: title and first sentence. Rooms that share a page are in ``SAME_PAGE``."""
SAME_PAGE = {"figures": "engine", "reproduce": "engine", "tables": "estimators"}


def by_room() -> dict[str, dict[str, Any]]:
    """Public objects by the page they belong to."""
    rooms: dict[str, dict[str, Any]] = defaultdict(dict)
    for address, each in public_objects().items():
        room = each.__module__.split(".")[1]
        rooms[SAME_PAGE.get(room, room)][address] = each
    return rooms


def first_sentence(each: Any) -> str:
    """The first line of a docstring, without roles and safe in a table."""
    line = (inspect.getdoc(each) or "").partition("\n")[0]
    for role in (":class:", ":func:", ":meth:", ":mod:"):
        line = line.replace(role, "")
    return in_table(line)


def in_table(text: str) -> str:
    r"""Text that can stand in a cell of a Markdown table; code keeps its signs, and bars in it do not end a cell.

    >>> in_table("the norm |A_star| < 1, by ``|A| < 1``, U*")
    'the norm \\|A_star\\| &lt; 1, by ``|A| < 1``, U\\*'
    """
    spans = re.split("(`+[^`]+`+)", " ".join(text.split()))
    return with_linked_papers("".join(span if span.startswith("`") else as_written(span) for span in spans))


def as_written(text: str) -> str:
    """Text in which Markdown and HTML find nothing of their own: ``U*``, ``<X, A>`` and bars stay as they are."""
    return text.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")


def with_leading_zeros(text: str) -> str:
    """The short numbers of statements and criteria as prose writes them.

    >>> with_leading_zeros("a share of .95 at eta=.05, above 1.5")
    'a share of 0.95 at eta=0.05, above 1.5'
    """
    return re.sub(r"(?<![\w.)\]])\.(?=\d)", "0.", text)


def room_page(room: str, objects: dict[str, Any]) -> str:
    """The page of a room: a table of names, then every object."""
    title, sentence = ROOMS[room]
    names = sorted(objects, key=lambda address: (objects[address].__module__, address))
    rows = [
        f"| [`{name.removeprefix('gyrostat.')}`][{in_reference(name, objects[name])}] | {first_sentence(objects[name])} |"
        for name in names
    ]
    parts = [f"# {title}", sentence, "\n".join(["| name | meaning |", "|---|---|", *rows])]
    parts += [diagnostics_table()] if room == "diagnostics" else []
    return "\n\n".join([*parts, *(directive(name, objects[name]) for name in names)]) + "\n"


def directive(name: str, each: Any) -> str:
    """What mkdocstrings replaces by the documentation of an object, with an anchor for its public name."""
    address = in_reference(name, each)
    return f"::: {name}" if address == name else f"[](){{#{name}}}\n\n::: {address}"


def diagnostics_table() -> str:
    """Everything that ``record=`` accepts by name."""
    import gyrostat as gs

    rows = [
        f"| `{name}` | {in_table(each.description)} | {in_table(each.units or '')} |"
        for name, each in gs.diagnostics.DIAGNOSTICS.items()
    ]
    heading = "## Names for `record=`\n\nA diagnostic of your own joins this list with `@gs.diagnostic`."
    return "\n".join([heading, "", "| name | meaning | unit |", "|---|---|---|", *rows])


def commands_page() -> str:
    """Every command with its arguments and options, as ``--help`` says them."""
    import typer

    from gyrostat.cli import app

    group = typer.main.get_command(app)
    parts = ["# Commands", "`gyrostat COMMAND --help` prints the same in a terminal."]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        usage = " ".join(
            ["gyrostat", name, *command.collect_usage_pieces(command.make_context(name, [], resilient_parsing=True))]
        )
        parts += [
            f"## gyrostat {name}",
            f"```text\n{usage}\n```",
            with_linked_papers(inspect.cleandoc(command.help or "")),
        ]
        parts += [options_table(command.params)] if command.params else []
    return "\n\n".join(parts) + "\n"


def options_table(parameters: Iterable[Any]) -> str:
    """The arguments and options of a command."""
    rows = []
    for each in parameters:
        if each.param_type_name == "argument":
            name = each.metavar or each.name.upper()
        else:
            name = ", ".join([*each.opts, *each.secondary_opts]) + (f" {each.metavar}" if each.metavar else "")
        shown = [in_table(getattr(each, "help", "") or ""), shown_default(each)]
        rows.append(f"| {in_table(f'`{name}`')} | {' '.join(part for part in shown if part)} |")
    return "\n".join(["| argument or option | meaning |", "|---|---|", *rows])


def shown_default(parameter: Any) -> str:
    """The default of an option as it would be typed; nothing for switches, and for defaults that the help text explains."""
    value = getattr(parameter.default, "value", parameter.default)
    if parameter.required or isinstance(value, bool) or value in (None, "", ()):
        return ""
    return f"Default: `{value}`."


def claims_page() -> str:
    """Every declared claim of the built-in papers."""
    from gyrostat.experiments.registry import PAPERS, find_paper

    parts = [
        "# Claims",
        "Every statement that `gyrostat reproduce` judges. [What a claim means](../claims.md) explains the words.",
        'Claims with "(ours)" are about statements that the paper does not make.',
    ]
    for name in PAPERS:
        paper = find_paper(name)
        parts += [f"## {paper.title}", *([f"<{paper.link}>"] if paper.link else [])]
        for experiment in paper.experiments:
            rows = [
                f"| `{name}/{experiment.name}/{claim.slug}`{' (ours)' if claim.ours else ''} "
                f"| {in_table(with_leading_zeros(claim.statement))} "
                f"| {in_table(with_leading_zeros(claim.criterion))} "
                f"| {claim.kind or claim.expected} |"
                for claim in experiment.claims
            ]
            parts += [
                f"### {experiment.title}",
                "\n".join(["| id | statement | criterion | expected |", "|---|---|---|---|", *rows]),
            ]
    return "\n\n".join(parts) + "\n"


def index_page(rooms: dict[str, dict[str, Any]]) -> str:
    """Where everything is."""
    rows = [f"| [{ROOMS[room][0]}]({room}.md) | {ROOMS[room][1]} |" for room in ROOMS if room in rooms]
    rows += [
        "| [Commands](commands.md) | Every command with its options. |",
        "| [Claims](claims.md) | Every statement that is judged. |",
    ]
    head = ["# Reference", "", "Every public name, with every parameter.", "", "| page | contents |", "|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    rooms = by_room()
    found = {f"{room}.md": room_page(room, objects) for room, objects in rooms.items()}
    return found | {"index.md": index_page(rooms), "commands.md": commands_page(), "claims.md": claims_page()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in pages().items():
        (FOLDER / file).write_text(text)
