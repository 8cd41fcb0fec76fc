"""A griffe extension that lets mkdocstrings read our docstrings: roles become links, doctests become examples.

It changes nothing in the package. Signatures of Equinox modules and named tuples, which have no ``__init__`` in the source,
are taken from the imported class.
"""

from __future__ import annotations

import inspect
import re
import types
from functools import cache
from operator import attrgetter
from typing import Any, ForwardRef

import equinox as eqx
import griffe

import gyrostat

FACES = {
    "gyrostat": gyrostat,
    **{f"gyrostat.{space}": attrgetter(space)(gyrostat) for space in (*gyrostat.NAMESPACES, "torch")},
}
"""The namespaces whose names are public; the reference lists all of them."""
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([\w.]+)`")
CITED = {
    "Xu 2024": "https://arxiv.org/abs/2403.01420",
    "Xiong 2024": "https://arxiv.org/abs/2310.01769",
    "Wang 2023": "https://arxiv.org/abs/2305.16038",
    "Wang, Jacot 2023": "https://arxiv.org/abs/2305.16038",
    "Xiong, Ding, Du 2024": "https://arxiv.org/abs/2310.01769",
    "Arjovsky et al. 2019": "https://arxiv.org/abs/1907.02893",
    "Kingma and Ba 2015": "https://arxiv.org/abs/1412.6980",
    "Li and others 2018": "https://arxiv.org/abs/1712.09203",
    "Meinshausen and Bühlmann 2015": "https://doi.org/10.1214/15-AOS1325",
    "Polyak 1964": "https://doi.org/10.1016/0041-5553%2864%2990137-5",
    "Stoeger and Soltanolkotabi 2021": "https://arxiv.org/abs/2106.15013",
    "Tong, Ma, Chi 2021": "https://arxiv.org/abs/2005.08898",
    "Zhang, Fattahi, Zhang 2021": "https://arxiv.org/abs/2504.09708",
}
"""How docstrings and claims name papers, and where the papers are."""
PARAMETER = re.compile(r"^(\w+(?:, \w+)*) ?: (.+)$")


@cache
def public_names() -> dict[str, str]:
    """The last part of every public name, and its address in the reference."""
    return {
        address.rpartition(".")[2]: in_reference(address, each) for address, each in reversed(public_objects().items())
    }


@cache
def public_objects() -> dict[str, Any]:
    """Every public name by its address, the first of several; modules, constants and the version are left out."""
    objects: dict[int, tuple[str, Any]] = {}
    for face, module in FACES.items():
        for name in module.__all__:
            each = getattr(module, name)
            if callable(each) and not isinstance(each, types.ModuleType):
                objects.setdefault(id(each), (f"{face}.{name}", each))
    return dict(objects.values())


def in_reference(address: str, each: Any) -> str:
    """The address by which griffe finds a public object: that of one in a module of the same name is the module's."""
    return f"{address}.{each.__name__}" if getattr(each, "__module__", None) == address else address


def linked(match: re.Match[str]) -> str:
    """The Markdown of a role: a link if the name is public, code if not."""
    name = match[1].removeprefix("gyrostat.").rpartition(".")[2]
    address = public_names().get(name)
    return f"[`{name}`][{address}]" if address else f"`{match[1]}`"


def with_linked_papers(text: str) -> str:
    """The text with a link wherever it names one of the papers; code stays as it is.

    >>> with_linked_papers("eq. 3 of Xu 2024")
    'eq. 3 of [Xu 2024](https://arxiv.org/abs/2403.01420)'
    """
    spans = re.split(r"(`+[^`]+`+|^\s*(?:>>>|\.\.\.) .*$)", text, flags=re.MULTILINE)
    for i in range(0, len(spans), 2):
        spans[i] = re.sub("|".join(map(re.escape, CITED)), lambda match: f"[{match[0]}]({CITED[match[0]]})", spans[i])
    return "".join(spans)


def with_examples_section(lines: list[str]) -> list[str]:
    """The lines with a heading in front of the doctests, unless there is one."""
    if "Examples" in lines:
        return lines
    first = next((i for i, line in enumerate(lines) if line.startswith(">>> ")), None)
    return lines if first is None else [*lines[:first], "Examples", "--------", *lines[first:]]


def with_descriptions_indented(lines: list[str]) -> list[str]:
    """The lines with ``name : description`` on two lines: types come from the signature, not from the text."""
    found, inside = [], False
    for before, line in zip(["", *lines], lines, strict=False):
        inside = (inside and not line.startswith("---")) or (
            line.startswith("---") and before in ("Parameters", "Attributes")
        )
        match = PARAMETER.match(line) if inside else None
        found += [match[1], f"    {match[2]}"] if match else [line]
    return found


def readable(text: str) -> str:
    """A docstring as mkdocstrings should read it."""
    lines = with_descriptions_indented(with_examples_section(inspect.cleandoc(text).splitlines()))
    return with_linked_papers(ROLE.sub(linked, "\n".join(lines)))


@cache
def without_constructor() -> dict[str, type]:
    """The public Equinox modules and named tuples by where they are defined."""
    classes = [each for each in public_objects().values() if isinstance(each, type) and made_by_fields(each)]
    return {f"{each.__module__}.{each.__qualname__}": each for each in classes}


def made_by_fields(each: type) -> bool:
    """Whether the constructor of a class is made from its fields when it is imported."""
    return issubclass(each, eqx.Module) or (issubclass(each, tuple) and hasattr(each, "_fields"))


def constructor_parameters(made: type) -> griffe.Parameters:
    """The parameters of the constructor of an imported class."""
    signature = inspect.signature(made)
    return griffe.Parameters(
        griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword),
        *(
            griffe.Parameter(
                name,
                annotation=shown_annotation(parameter.annotation),
                kind=griffe.ParameterKind(parameter.kind.description),
                default=shown_default(parameter.default),
            )
            for name, parameter in signature.parameters.items()
        ),
    )


def shown_annotation(annotation: Any) -> str | None:
    """An annotation as text.

    >>> shown_annotation(ForwardRef("tuple[str, ...]")), shown_annotation(int)
    ('tuple[str, ...]', 'int')
    """
    if annotation is inspect.Parameter.empty:
        return None
    if isinstance(annotation, ForwardRef):  # the fields of named tuples
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def shown_default(value: Any) -> str | None:
    """A default as text; one that is made anew for every object has no value to show."""
    if value is inspect.Parameter.empty:
        return None
    return "..." if repr(value) == "<factory>" else repr(value)


class DocstringMarkup(griffe.Extension):
    """Rewrite docstrings, and give classes that are made from their fields the constructor that they have at run time."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Every object: its docstring."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Classes whose constructor is made from their fields."""
        if "__init__" not in cls.members and (made := without_constructor().get(cls.path)):
            cls.set_member("__init__", griffe.Function("__init__", parameters=constructor_parameters(made), parent=cls))
