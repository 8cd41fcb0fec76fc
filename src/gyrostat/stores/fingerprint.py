"""The fingerprint of a computation: everything in code that its numbers depend on, by name.

A fingerprint is a dictionary from names (``jax``, "`eta` of module `settings`") to versions and short digests. Stored numbers
are used again only if their fingerprint is the one of today, and :func:`differences` names what changed.

It covers what a function can reach: code, defaults, closures, the globals that it names, functions and classes among these in
turn, as they are while the program runs. It also covers the files of the user's modules among these and all that they import,
definition by definition. Comments, layout and docstrings do not count. Libraries count by their versions, and of gyrostat
those rooms that can change a number. Not covered: files that a function opens, modules that are imported by a text
(``import_module("helper")``), and values that the running program sets in a module that only functions import, inside.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import types
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import gyrostat

ROOMS = (
    *("errors", "sources", "jax_tools", "models", "environments", "measurements", "algorithms"),
    *("diagnostics", "engine", "theory", "experiments"),
)
"""The code of gyrostat that can change a number.

Of ``papers`` and ``studies`` only those files count that an experiment imports. Papers also import ``figures`` and
``typing``: figures are drawn again from the stored data, and types change no number.
"""

PAPERS = ("gyrostat.papers", "gyrostat.studies")
FILE = " (file)"
"""The ending of the name of a definition as its file has it; as it is in memory, it counts apart."""

MOST_NAMED = 4
"""Changes of code that a sentence names."""

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented))
ARRAYS_OF = ("numpy", "jax", "jaxlib", "torch")
WITHOUT_VALUE = ("_thread", "threading", "weakref", "os")
"""Modules of locks, references and the environment of the process, which count by their class alone."""

HIDDEN = (
    *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate__", "__annotate_func__"),
    *("__annotations_cache__", "__firstlineno__", "__static_attributes__"),
    "__slotnames__",  # written by Python when an object of the class is first copied
)
"""Members of a class that change no number, or that change by themselves."""

PYTHON = ".".join(platform.python_version_tuple()[:2])
STDLIB = Path(os.__file__).resolve().parent
MAIN = "__main__"


@functools.cache
def core_digest(*more: str) -> str:
    """The digest of all files in ``ROOMS``, and of ``more`` files of the package, as this process first found them."""
    home = Path(gyrostat.__file__).parent
    # A room is a folder or a file.
    files = {file for room in ROOMS for file in [*(home / room).rglob("*.py"), *home.glob(f"{room}.py")]}
    files |= {home / name for name in more}
    return _hex(b"".join(f.relative_to(home).as_posix().encode() + b"\0" + f.read_bytes() for f in sorted(files)))


def fingerprint(values: Mapping[str, Any], *, core: Iterable[str] = (), files: Iterable[Path] = ()) -> dict[str, str]:
    """The fingerprint of settings, by name, that are functions or other objects.

    ``core`` are files of gyrostat that count besides ``ROOMS``, and ``files`` are files of the user that count besides what
    is imported.

    >>> from functools import partial
    >>> differences(fingerprint({"rate": partial(pow, 2)}), fingerprint({"rate": partial(pow, 3)}))
    ['setting `rate` differs']
    """
    reader = _Reader(values.values())
    for name, value in values.items():
        reader.read(f"setting `{name}`", value)
    for file in files:
        reader.write(f"file `{file.name}`", _parts_of(file.read_bytes(), "")[0])
    version = f"{gyrostat.__version__}+{core_digest(*core)}"
    return {"gyrostat": version, "jax": str(_version("jax")), **reader.parts()}


def short(fingerprint: Mapping[str, str]) -> str:
    """A fingerprint as twelve hexadecimal digits."""
    return _hex(json.dumps(fingerprint, sort_keys=True).encode())


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What two fingerprints differ in, versions first.

    >>> differences({"jax": "0.9", "`eta` of module `a`": "1f"}, {"jax": "0.10", "`eta` of module `a`": "2e"})
    ["jax: '0.9' -> '0.10'", '`eta` of module `a` differs']
    """
    names = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    versions = [f"{name}: {before.get(name)!r} -> {now.get(name)!r}" for name in names if "`" not in name]
    code = [*dict.fromkeys(name.removesuffix(FILE) for name in names if "`" in name)]
    rest = [f"{len(code) - MOST_NAMED} more differ"] if len(code) > MOST_NAMED else []
    return [*versions, *(f"{name} differs" for name in code[:MOST_NAMED]), *rest]


class _Reader:
    """Feeds what is reached from values to digests, one for each named part of the code."""

    def __init__(self, roots: Iterable[Any]):
        self.digests: dict[str, Any] = defaultdict(hashlib.sha256)
        self.versions: dict[str, str] = {}
        # What a part has read, with the object, because an id is free again when its object is gone.
        self.seen: dict[str, dict[int, tuple[int, Any]]] = defaultdict(dict)
        self.visited: dict[int, tuple[tuple[Any, ...], Any]] = {}
        self.namesakes: Counter[tuple[str, str]] = Counter()
        self.globals_read: set[tuple[str, str]] = set()
        self.names: set[str] = set()
        self.referred: dict[str, types.ModuleType] = {}
        self.modules_read: set[str] = set()
        self.libraries: dict[str, bool] = {}
        # The package of a function that is asked for is the user's own, also when it is installed.
        self.own = {MAIN}
        for root in roots:
            module = getattr(getattr(root, "func", root), "__module__", None) or ""
            top = module.split(".")[0]
            file = _file_of(module) if top != "gyrostat" else None
            if file and any(name.split(".")[0] == "gyrostat" for name in _parts_of(file.read_bytes(), module)[1]):
                self.own.add(top)

    def parts(self) -> dict[str, str]:
        """Versions and digests by name, also of those values of the modules referred to that some function can name."""
        while values := [
            (home, name, vars(module)[name])
            for home, module in self.referred.items()
            for name in sorted((self.names & vars(module).keys()) - {*HIDDEN})
            if (home, name) not in self.globals_read
        ]:
            for home, name, value in values:
                self._read_global(home, name, value)
        return {**self.versions, **{name: digest.hexdigest()[:12] for name, digest in self.digests.items()}}

    def write(self, part: str, *words: object) -> None:
        """Add words to a part."""
        self.digests[part].update(repr(words).encode())

    def read(self, part: str, value: Any) -> None:
        """Add a value to a part, with everything that it consists of."""
        kind = type(value)
        if kind in PLAIN:
            self.write(part, kind.__name__, repr(value))
        elif isinstance(value, types.FunctionType):
            self._read_function(part, value)
        elif isinstance(value, type):
            self._read_class(part, value)
        elif isinstance(value, types.ModuleType):
            home = _main(value.__name__)
            self.write(part, "module", home)
            if not self._is_library(home):
                self._read_files(home)
                self.referred[home] = value  # its values are read in the end
        elif isinstance(value, types.CodeType):
            self._read_code(part, value, docstring=None)
        elif kind is tuple:
            self._read_all(part, "tuple", value)
        elif isinstance(value, set | frozenset):
            self._read_all(part, "set", sorted(value, key=repr))
        # Python merges equal constants at its own discretion; of all that comes now, it matters which ones are the same object.
        elif id(value) in self.seen[part]:
            self.write(part, "again", self.seen[part][id(value)][0])
        else:
            self.seen[part][id(value)] = len(self.seen[part]), value
            self._read_object(part, value)

    def _read_all(self, part: str, kind: str, values: Iterable[Any]) -> None:
        values = list(values)
        self.write(part, kind, len(values))
        for value in values:
            self.read(part, value)

    def _read_object(self, part: str, value: Any) -> None:
        """An object by its class and what a copy is made from; what has no such value, as a file, by its class alone."""
        kind = type(value)
        library = kind.__module__.split(".")[0]
        if kind in (list, dict, types.MappingProxyType):
            self._read_all(part, kind.__name__, value if kind is list else value.items())
        elif isinstance(value, types.MethodType):
            self._read_all(part, "method", [value.__func__, value.__self__])
        elif isinstance(value, property):
            self._read_all(part, "property", [value.fget, value.fset, value.fdel])
        elif library in ("builtins", "jaxlib") and hasattr(value, "__wrapped__"):
            # Static methods; and jitted functions, whose own state has counters and line numbers.
            self._read_all(part, kind.__name__, [value.__wrapped__])
        elif library in ARRAYS_OF and hasattr(value, "__array__") and _is_plain_dtype(value.dtype):
            array = np.asarray(value)
            self.write(part, "array", kind.__qualname__, str(array.dtype), array.shape)
            self.digests[part].update(array.tobytes())
        else:
            self.read(part, kind)
            if library not in WITHOUT_VALUE:
                self._read_all(part, "state", _state(value))

    def _read_code(self, part: str, code: types.CodeType, docstring: str | None) -> None:
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & 0x3FF)
        self.write(part, "code", code.co_code, code.co_exceptiontable, code.co_names, arguments, *counts)
        self._read_all(part, "constants", [None if constant == docstring else constant for constant in code.co_consts])

    def _read_function(self, part: str, function: types.FunctionType) -> None:
        # Not `__module__`, which decorators of libraries copy from the user's function.
        home = _main(function.__globals__.get("__name__") or "")
        if not self._is_new(part, "function", home, function.__qualname__, function):
            return
        is_library = self._is_library(home)
        own = f"`{function.__qualname__.split('.')[0]}` of module `{home}`"
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            of_cell = part if is_library else f"closure value `{name}` of {own}"
            self.write(of_cell, "cell", name)
            try:
                value = cell.cell_contents
            except ValueError:  # a name that is bound later
                continue
            self.read(of_cell, value)
        if is_library:
            return
        self._read_files(home)
        self._read_code(own, function.__code__, function.__doc__)
        attributes = {name: value for name, value in vars(function).items() if name not in HIDDEN}
        self._read_all(own, "defaults", [function.__defaults__, function.__kwdefaults__, attributes])
        names: set[str] = set()
        for code in _nested_codes(function.__code__):
            # Texts, too: getattr(settings, "eta").
            self.names.update(code.co_names, (text for text in code.co_consts if isinstance(text, str)))
            module = ""
            for step in dis.get_instructions(code):
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
                    names.add(step.argval)
                # Imports inside a function that is in no file.
                elif home == MAIN and step.opname == "IMPORT_NAME":
                    module = step.argval
                    self._read_files(module)
                elif home == MAIN and step.opname == "IMPORT_FROM":
                    self._read_files(f"{module}.{step.argval}")
        for name in sorted(names & function.__globals__.keys()):
            self._read_global(home, name, function.__globals__[name])

    def _read_class(self, part: str, kind: type) -> None:
        home = _main(kind.__module__)
        if self._is_new(part, "class", home, kind.__qualname__, kind) and not self._is_library(home):
            own = f"`{kind.__qualname__.split('.')[0]}` of module `{home}`"
            self._read_files(home)
            self._read_all(own, "bases", kind.__bases__)
            for name, member in sorted(vars(kind).items()):
                if name not in HIDDEN and not name.startswith("_abc_"):
                    self.write(own, name)
                    self.read(own, member)

    def _is_new(self, part: str, kind: str, home: str, name: str, value: Any) -> bool:
        """Refer to a function or a class; whether it was not referred to before. Several can have one name."""
        if is_new := id(value) not in self.visited:
            self.visited[id(value)] = (kind, home, name, self.namesakes[home, name]), value
            self.namesakes[home, name] += 1
        self.write(part, *self.visited[id(value)][0])
        return is_new

    def _read_global(self, home: str, name: str, value: Any) -> None:
        if (home, name) not in self.globals_read:
            self.globals_read.add((home, name))
            self.read(f"`{name}` of module `{home}`", value)

    def _read_files(self, module: str) -> None:
        """The files of a module of the user's and of those that it imports, and the versions of libraries."""
        waiting = [module]
        while waiting:
            name = waiting.pop()
            if not name or name in self.modules_read or self._is_library(name):
                continue
            self.modules_read.add(name)
            self.versions["python"] = PYTHON
            # Importing a module runs the packages around it. A paper's imports all of its experiments.
            if not name.startswith(PAPERS):
                waiting.append(name.rpartition(".")[0])
            file = _file_of(name)
            if file is not None:  # of a notebook, a script, or no module at all, only what is reached counts
                package = name if file.stem == "__init__" else name.rpartition(".")[0]
                parts, imports = _parts_of(file.read_bytes(), package)
                for part, digest in parts.items():
                    self.write(f"{part} of module `{name}`{FILE}", digest)
                waiting += imports

    def _is_library(self, module: str) -> bool:
        """Whether a module counts by its version, which is noted: Python's own, installed ones, and the core of gyrostat."""
        top = module.split(".")[0]
        if top == "gyrostat":
            return not module.startswith(PAPERS)
        if top not in self.own and module not in self.libraries:
            file = _file_of(module)
            name, version = top, None
            if file is not None and {"site-packages", "dist-packages"} & {*file.parts}:
                version = _version(top)
            elif top in sys.stdlib_module_names if file is None else file.is_relative_to(STDLIB):
                name, version = "python", PYTHON
            self.libraries[module] = version is not None
            if version is not None:
                self.versions[name] = version
        return self.libraries.get(module, False)


def _main(module: str) -> str:
    """The main program has another name in worker processes, and what ``exec`` runs may have none."""
    return MAIN if module in ("", "__mp_main__") else module


def _nested_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested_codes(constant)


def _is_plain_dtype(dtype: Any) -> bool:
    """Whether the bytes of an array are its value: not for JAX's keys, nor for arrays of objects."""
    return "key<" not in str(dtype) and not getattr(dtype, "hasobject", False)


def _state(value: Any) -> list[Any]:
    """What a copy of an object is made from; its name, if it cannot be copied."""
    try:
        reduced = value.__reduce_ex__(2)
    except Exception:  # whatever an object raises that cannot be copied
        return [getattr(value, "__dict__", None), getattr(value, "__name__", None)]
    if isinstance(reduced, str):
        return [reduced, getattr(value, "__module__", None), getattr(value, "__wrapped__", None)]
    return [*reduced[1:3], *(list(items) for items in reduced[3:5] if items is not None)]


# Files


@functools.cache
def _version(top: str) -> str | None:
    """The version of the installed package that a top-level module belongs to."""
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(top)
        return importlib.metadata.version(names[0]) if names else None


def _file_of(module: str) -> Path | None:
    """The file of a module, which is not imported; None for a notebook, for a folder, and for a name that is no module."""
    top, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # a script, or a module that was made by hand
        spec = None
    if spec is None:
        return None
    files = [Path(spec.origin or "")]
    if inner:
        folders = [Path(folder, *inner) for folder in spec.submodule_search_locations or ()]
        files = [file for folder in folders for file in (folder / "__init__.py", folder.with_name(f"{folder.name}.py"))]
    return next((file.resolve() for file in files if file.is_file()), None)


@functools.cache
def _parts_of(content: bytes, package: str) -> tuple[dict[str, str], list[str]]:
    """The digests of what a file of a package defines, by name, and the modules, or what may be modules, that it imports."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # a file that no import can run through, or that is not Python
        return {"`all`": _hex(content)}, []
    imports = []
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                imports += [alias.name for alias in node.names]
            case ast.ImportFrom():
                around = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
                base = ".".join([*around, *filter(None, [node.module])])
                imports += [base, *(f"{base}.{alias.name}" for alias in node.names)]
            case ast.AST(body=[ast.Expr(value=ast.Constant(value=str())), *rest]):
                node.body = rest or [ast.Pass()]  # type: ignore[attr-defined]
    definitions: dict[str, str] = defaultdict(str)
    others = ""
    for statement in tree.body:
        text = ast.dump(statement)
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [statement.name]
        else:
            nodes = ast.walk(statement)
            names = sorted(
                {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            )
        others += repr(names or text)  # names as well: their order can matter
        for name in names:
            definitions[f"`{name}`"] += text
    definitions["`import` and other statements"] = others
    return {name: _hex(text.encode()) for name, text in definitions.items()}, imports


def _hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
