"""`ReadableModule`: an Equinox module whose text is the call that makes it, and that explains misspelt arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np

from gyrostat import errors

MOST_SHOWN = 64
"""Arrays with more numbers are shown by their shape; the text can then not be evaluated."""

HTML = """\
<div class="gyrostat"><code>{{ name }}</code>{% if about %} <span>{{ about }}</span>{% endif %}
{%- if rows %}<table>
{%- for row in rows %}<tr><th style="text-align:left">{{ row.name }}</th><td style="text-align:left">
{%- if row.inner %}<details><summary><code>{{ row.text }}</code></summary>{{ row.inner | safe }}</details>
{%- else %}<code>{{ row.text }}</code>{% endif %}</td></tr>
{%- endfor %}</table>{% endif %}</div>"""


if TYPE_CHECKING:  # a checker of types sees fields in constructors only through Equinox's own metaclass
    from equinox import Module as ExplainingModule
else:

    class ExplainsArguments(type(eqx.Module)):
        """A metaclass: a misspelt argument, or a value that contradicts its annotation, gets a sentence."""

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if kwargs:
                known = errors.keyword_names(cls.__init__)
                if known is not None:
                    errors.check_keywords(cls.__name__, kwargs, known[1:])
            errors.check_declared(cls.__init__, (cls, *args), kwargs)
            return super().__call__(*args, **kwargs)

    class ExplainingModule(eqx.Module, metaclass=ExplainsArguments):
        """An Equinox module that explains misspelt and contradictory arguments."""


class ReadableModule(ExplainingModule):
    """A module that prints as the shortest call that makes an equal one, and as a table in notebooks.

    >>> from gyrostat import HeteroSGD, Problem, RandomEnvironments, FreshGaussian, TwoPoint
    >>> HeteroSGD(0.05)
    HeteroSGD(0.05)
    >>> problem = Problem(RandomEnvironments(60, law=TwoPoint(spread=6.0)), FreshGaussian(8000))
    >>> problem
    Problem(RandomEnvironments(60, law=TwoPoint(spread=6.0)), FreshGaussian(8000))
    >>> eval(repr(problem)) == problem
    True
    """

    def arguments(self) -> Mapping[str, Any] | None:
        """The arguments of a call that makes an equal object, by name; None if they are not known.

        By default every parameter of the constructor is looked up in the field of its name.
        """
        names = [p.name for p in _parameters(type(self)) if p.kind is not p.VAR_KEYWORD]
        return {name: getattr(self, name) for name in names} if all(hasattr(self, name) for name in names) else None

    def __repr__(self) -> str:
        given = self.arguments()
        if given is None:
            fields = {name: getattr(self, name, None) for name in self.__dataclass_fields__}
            return f"{type(self).__name__}({', '.join(f'{k}={text_of(v)}' for k, v in fields.items())})"
        return _call_text(type(self), _shortest(self, given))

    def _repr_html_(self) -> str:
        """The object as a table of its arguments, for notebooks."""
        import jinja2

        given = self.arguments()
        if given is None:
            given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        rows = [
            {"name": k, "text": text_of(v), "inner": v._repr_html_() if isinstance(v, ReadableModule) else ""}
            for k, v in given.items()
        ]
        about = (inspect.getdoc(type(self)) or "").partition("\n")[0]
        template = jinja2.Environment(autoescape=True).from_string(HTML)
        return template.render(name=type(self).__name__, about=about, rows=rows)


def _parameters(kind: type) -> list[inspect.Parameter]:
    return list(inspect.signature(kind.__init__).parameters.values())[1:]


def _shortest(module: ReadableModule, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without those that can be left out: the object made without them is equal."""
    kept = {name: x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for name, x in given.items()}
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(module)):
        return kept
    for parameter in reversed(_parameters(type(module))):
        if parameter.name not in kept or parameter.default is parameter.empty:
            continue
        fewer = {name: value for name, value in kept.items() if name != parameter.name}
        try:
            is_same = bool(type(module)(**fewer) == module)
        except Exception:  # an argument without which the others make no sense
            is_same = False
        kept = fewer if is_same else kept
    return kept


def _call_text(kind: type, given: Mapping[str, Any]) -> str:
    """The call as text. Arguments that must be given come first and without their names."""
    parts, by_position = [], True
    for parameter in _parameters(kind):
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts += [text_of(value) for value in given.get(parameter.name, ())]
            continue
        is_required = parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        by_position = by_position and is_required
        if parameter.name in given:
            text = text_of(given[parameter.name])
            parts.append(text if by_position else f"{parameter.name}={text}")
    return f"{kind.__name__}({', '.join(parts)})"


def text_of(value: Any) -> str:
    """A value as Python source: arrays as lists, large arrays by their shape, functions by their names.

    >>> text_of(np.eye(2)), text_of(np.float64(8000)), text_of(np.zeros(1000))
    ('[[1.0, 0.0], [0.0, 1.0]]', '8000', '<1000 numbers>')
    """
    if isinstance(value, np.ndarray | np.generic | jax.Array) and not isinstance(value, jax.core.Tracer):
        array = np.asarray(value)
        if array.size > MOST_SHOWN:
            return f"<{' x '.join(map(str, array.shape))} numbers>"
        return text_of(array.tolist())
    if isinstance(value, list | tuple):
        inside = ", ".join(map(text_of, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, float):
        if not np.isfinite(value):
            return f"float({str(value)!r})"
        return f"{value:.0f}" if value.is_integer() and 100 <= abs(value) < 1e15 else repr(value)
    if callable(value) and hasattr(value, "__qualname__") and not isinstance(value, ReadableModule):
        return f"<function {value.__qualname__}>"
    return repr(value)
