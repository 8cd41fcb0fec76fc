"""The fingerprint of a computation: everything in code that its numbers depend on, by name.

A fingerprint is a dictionary from names (``jax``, "`eta` of module `settings`") to versions and short digests. Stored numbers
are used again only if their fingerprint is the one of today, and :func:`differences` names what changed.

It covers what a function can reach: code, defaults, closures, the globals that it names, functions and classes among these in
turn, as they are while the program runs. It also covers the files of the user's modules among these and all that they import,
definition by definition. Comments, layout and docstrings do not count. Libraries count by their versions, and of gyrostat
those rooms that can change a number. Not covered: files that a function opens, and modules whose names are computed.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import sysconfig
import types
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gyrostat

ROOMS = (
    *("errors", "jax_tools", "models", "environments", "measurements", "algorithms"),
    *("diagnostics", "engine", "theory", "experiments"),
)
"""The code of gyrostat that can change a number.

Of ``papers`` only those files count that an experiment imports. Papers also import ``figures`` and ``typing``: figures are
drawn again from the stored data, and types change no number.
"""

PAPERS = "gyrostat.papers"
FILE = " (file)"
"""The ending of the name of a definition as its file has it; as it is in memory, it counts apart."""

MOST_NAMED = 4
"""Changes of code that a sentence names."""

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented))
ARRAYS_OF = ("numpy", "jax", "jaxlib", "torch")
WITHOUT_VALUE = ("_thread", "threading", "weakref")
"""Modules of locks and references, which count by their class alone."""

HIDDEN = (
    *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate__", "__annotate_func__"),
    *("__annotations_cache__", "__firstlineno__", "__static_attributes__"),
    "__slotnames__",  # written by Python when an object of the class is first copied
)
"""Members of a class that change no number, or that change by themselves."""

STDLIB = tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})
MAIN = "__main__"


@functools.cache
def core_digest(*more: str) -> str:
    """The digest of all files in ``ROOMS``, and of ``more`` files of the package, as this process first found them."""
    home = Path(gyrostat.__file__).parent
    files = {file for room in ROOMS for file in (home / room).rglob("*.py")} | {home / name for name in more}
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


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
        reader.write(f"file `{file.name}`", _parts_of(file)[0])
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
        self.modules: set[str] = set()
        self.names: set[str] = set()
        self.referred: dict[str, types.ModuleType] = {}
        self.libraries: dict[str, bool] = {}
        # The package of a function that is asked for is the user's own, also when it is installed.
        self.own = {module.split(".")[0] for module in map(_module_of, roots) if _imports_gyrostat(module)}

    def parts(self) -> dict[str, str]:
        """Versions and digests by name, also of those values of the modules referred to that some function can name."""
        while values := [*self._named_values()]:
            for home, name, value in values:
                self._read_global(home, name, value)
        return {**self.versions, **{name: digest.hexdigest()[:12] for name, digest in self.digests.items()}}

    def _named_values(self) -> Iterator[tuple[str, str, Any]]:
        for home, module in self.referred.items():
            for name in sorted(self.names & vars(module).keys()):
                if (home, name) not in self.globals_read:
                    yield home, name, vars(module)[name]

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
            self._read_module(part, value)
        elif isinstance(value, types.CodeType):
            self._read_code(part, value)
        elif kind is tuple:
            self._read_all(part, "tuple", value)
        elif isinstance(value, set | frozenset):
            self.write(part, "set", sorted(self._alone(item) for item in value))
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

    def _alone(self, value: Any) -> str:
        """The digest of a value by itself."""
        scratch = f"item {len(self.digests)}"
        self.read(scratch, value)
        self.seen.pop(scratch, None)
        return self.digests.pop(scratch).hexdigest()

    def _read_code(self, part: str, code: types.CodeType) -> None:
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & 0x3FF)
        self.write(part, "code", code.co_code, code.co_exceptiontable, code.co_names, arguments, *counts)
        self._read_all(part, "constants", code.co_consts)

    def _read_function(self, part: str, function: types.FunctionType) -> None:
        # Not `__module__`, which decorators of libraries copy from the user's function.
        home = _main(function.__globals__.get("__name__") or "")
        if not self._is_new(part, "function", home, function.__qualname__, function):
            return
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if self._is_library(home):
            for name, cell in cells.items():
                self._read_cell(part, name, cell)
            return
        top = function.__qualname__.split(".")[0]
        own = f"`{top}` of module `{home}`"
        self._read_files(home)
        facts = _facts(function.__code__)
        self.names |= facts.names
        text = function.__doc__
        self._read_code(own, _without(function.__code__, text) if text else function.__code__)
        attributes = {name: x for name, x in vars(function).items() if name not in HIDDEN}
        self._read_all(own, "defaults", [function.__defaults__, function.__kwdefaults__, attributes])
        for name, cell in cells.items():
            self._read_cell(f"closure value `{name}` of {own}", name, cell)
        for name in sorted(facts.globals & function.__globals__.keys()):
            self._read_global(home, name, function.__globals__[name])
        for imported in facts.imports:
            self._read_import(own, imported, function.__globals__)

    def _is_new(self, part: str, kind: str, home: str, name: str, value: Any) -> bool:
        """Refer to a function or a class; whether it was not referred to before. Several can have one name."""
        if is_new := id(value) not in self.visited:
            self.visited[id(value)] = (kind, home, name, self.namesakes[home, name]), value
            self.namesakes[home, name] += 1
        self.write(part, *self.visited[id(value)][0])
        return is_new

    def _read_cell(self, part: str, name: str, cell: types.CellType) -> None:
        self.write(part, "cell", name)
        try:
            value = cell.cell_contents
        except ValueError:  # a name that is bound later
            return
        self.read(part, value)

    def _read_global(self, home: str, name: str, value: Any) -> None:
        if (home, name) not in self.globals_read:
            self.globals_read.add((home, name))
            self.read(f"`{name}` of module `{home}`", value)

    def _read_import(self, part: str, imported: _Import, context: dict[str, Any]) -> None:
        """A module that a function imports when it runs. It is imported here, so that it is read before and after alike."""
        if not imported.level and self._is_library(imported.name):
            return
        try:
            module = __import__(imported.name, context, None, imported.names, imported.level)
        except Exception as error:  # whatever the user's module raises: so will the function, if it comes so far
            self.write(part, "cannot be imported", imported.name, type(error).__name__)
            return
        self._read_module(part, module)
        if not imported.names:
            self._read_files(imported.name)

    def _read_module(self, part: str, module: types.ModuleType) -> None:
        """A module of the user's by its files; its values are read in the end."""
        home = _main(module.__name__)
        self.write(part, "module", home)
        if not self._is_library(home):
            self._read_files(home)
            self.referred[home] = module

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

    def _read_object(self, part: str, value: Any) -> None:
        """An object by its class and its value; what has no value that could be copied, such as a file, by its class alone."""
        kind = type(value)
        if kind is list:
            self._read_all(part, "list", value)
        elif kind is dict or kind is types.MappingProxyType:
            self._read_all(part, kind.__name__, (item for pair in value.items() for item in pair))
        elif isinstance(value, types.MethodType):
            self._read_all(part, "method", [value.__func__, value.__self__])
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            self.write(part, "builtin", value.__module__, value.__qualname__)
            self.read(part, None if isinstance(owner, types.ModuleType) else owner)
        elif isinstance(value, staticmethod | classmethod):
            self._read_all(part, kind.__name__, [value.__func__])
        elif isinstance(value, property):
            self._read_all(part, "property", [value.fget, value.fset, value.fdel])
        elif kind.__module__.startswith("jaxlib") and hasattr(value, "__wrapped__"):
            self._read_all(part, "jitted", [value.__wrapped__])  # its own state has counters and line numbers
        elif _is_array(value):
            array = np.asarray(value)
            self.write(part, "array", kind.__qualname__, str(array.dtype), array.shape)
            if array.dtype.hasobject:
                self._read_all(part, "objects", array.ravel().tolist())
            else:
                self.digests[part].update(array.tobytes())
        else:
            self.read(part, kind)
            if value is not os.environ and kind.__module__ not in WITHOUT_VALUE:
                self._read_all(part, "state", _state(value))

    def _read_files(self, module: str) -> None:
        """The files of a module of the user's and of those that it imports, and the versions of libraries."""
        waiting = [module]
        while waiting:
            name = waiting.pop()
            if name in self.modules or self._is_library(name):
                continue
            self.modules.add(name)
            self.versions["python"] = ".".join(platform.python_version_tuple()[:2])
            file = _file_of(name) if name != MAIN else None
            if file is None:  # a notebook, a script, a folder, or no module at all: only what is reached counts
                continue
            parts, imports = _parts_of(file)
            for part, digest in parts:
                self.write(f"{part} of module `{name}`{FILE}", digest)
            waiting += _modules_named(name, imports, is_package=file.name == "__init__.py")

    def _is_library(self, module: str) -> bool:
        """Whether a module counts by its version, which is noted: Python's own, installed ones, and the core of gyrostat."""
        top = module.split(".")[0]
        if top in ("gyrostat", MAIN, *self.own):
            return top == "gyrostat" and not module.startswith(PAPERS)
        if module not in self.libraries:
            version = _library_version(module)
            self.libraries[module] = version is not None
            if version is not None:
                self.versions["python" if _is_pythons(module) else top] = version
        return self.libraries[module]


class _Import(NamedTuple):
    """An import statement: ``from name import names``, with as many dots as ``level``."""

    name: str
    names: tuple[str, ...]
    level: int


class _Facts(NamedTuple):
    """What a code object, with the code inside it, refers to."""

    globals: frozenset[str]
    names: frozenset[str]
    imports: tuple[_Import, ...]


@functools.cache
def _facts(code: types.CodeType) -> _Facts:
    steps = list(dis.get_instructions(code))
    inner = [_facts(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    read = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")}
    texts = {constant for constant in code.co_consts if isinstance(constant, str)}
    imports = [
        _Import(step.argval, steps[i - 1].argval or (), steps[i - 2].argval)
        for i, step in enumerate(steps)
        if step.opname == "IMPORT_NAME"
    ]
    if {"import_module", "__import__"} & set(code.co_names):
        imports += [_Import(text, ("__name__",), 0) for text in sorted(texts) if text.replace(".", "_").isidentifier()]
    return _Facts(
        frozenset(read).union(*(facts.globals for facts in inner)),
        # Texts, too: getattr(settings, "eta").
        frozenset(texts).union(code.co_names, *(facts.names for facts in inner)),
        (*imports, *(imported for facts in inner for imported in facts.imports)),
    )


def _without(code: types.CodeType, text: str) -> types.CodeType:
    """Code without its docstring."""
    return code.replace(co_consts=tuple(None if constant == text else constant for constant in code.co_consts))


def _main(module: str) -> str:
    """The main program has another name in worker processes, and what ``exec`` runs may have none."""
    return MAIN if module in ("", "__mp_main__") else module


def _module_of(value: Any) -> str:
    function = getattr(value, "func", value)
    return str(function.__module__) if isinstance(function, types.FunctionType | type) else ""


def _imports_gyrostat(module: str) -> bool:
    file = _file_of(module) if module.split(".")[0] not in ("gyrostat", MAIN, "") else None
    return file is not None and any(i.name.split(".")[0] == "gyrostat" for i in _parts_of(file)[1])


def _is_array(value: Any) -> bool:
    of = type(value).__module__.split(".")[0]
    is_key = "key<" in str(getattr(value, "dtype", ""))  # JAX's keys, which NumPy cannot hold
    return of in ARRAYS_OF and hasattr(value, "__array__") and hasattr(value, "dtype") and not is_key


def _state(value: Any) -> list[Any]:
    """What a copy of an object is made from; nothing if it cannot be copied."""
    try:
        reduced = value.__reduce_ex__(2)
    except Exception:  # whatever an object raises that cannot be copied
        return [getattr(value, "__dict__", None)]
    if isinstance(reduced, str):
        return [reduced, getattr(value, "__wrapped__", None)]
    return [*reduced[1:3], *(list(items) for items in reduced[3:5] if items is not None)]


# Files


def _library_version(module: str) -> str | None:
    """The version of Python or of the installed package that a module belongs to; None for the user's own."""
    if _is_pythons(module):
        return ".".join(platform.python_version_tuple()[:2])
    file = _file_of(module)
    is_installed = file is not None and {"site-packages", "dist-packages"} & set(file.parts)
    return _version(module.split(".")[0]) if is_installed else None


def _is_pythons(module: str) -> bool:
    top = module.split(".")[0]
    if top not in sys.stdlib_module_names:
        return False
    file = _file_of(top)
    return file is None or any(file.is_relative_to(folder) for folder in STDLIB)


@functools.cache
def _version(top: str) -> str | None:
    """The version of the installed package that a top-level module belongs to."""
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(top)
        return importlib.metadata.version(names[0]) if names else None


def _file_of(module: str) -> Path | None:
    """The file of a module; None for a notebook, for a folder of modules, and for a name that is no module."""
    if module.startswith("gyrostat."):
        path = Path(gyrostat.__file__).parent.joinpath(*module.split(".")[1:])
        return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
    loaded = sys.modules.get(module)
    spec = None if loaded is not None else _spec_of(module)
    file = getattr(loaded, "__file__", None) or (spec.origin if spec is not None and spec.has_location else None)
    return Path(file).resolve() if file and Path(file).is_file() else None


def _spec_of(module: str) -> ModuleSpec | None:
    """Where a module would be imported from. Unlike :func:`importlib.util.find_spec`, this runs no code of its packages."""
    parent = module.rpartition(".")[0]
    folders = None
    if parent:
        outer = getattr(sys.modules.get(parent), "__spec__", None) or _spec_of(parent)
        folders = outer.submodule_search_locations if outer is not None else None
        if folders is None:
            return None
    specs = (finder.find_spec(module, folders) for finder in sys.meta_path)
    return next((spec for spec in specs if spec is not None), None)


Parts = tuple[tuple[tuple[str, str], ...], tuple[_Import, ...]]


def _parts_of(file: Path) -> Parts:
    """The digests of what a file defines, by name, and its imports."""
    content = file.read_bytes()
    if file.suffix == ".py":
        with suppress(SyntaxError):  # a file that no import can run through
            return _parts_of_source(content)
    return (("`all`", _hex(content)),), ()


@functools.cache
def _parts_of_source(content: bytes) -> Parts:
    tree = ast.parse(content)
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _remove_docstring(node)
    definitions: dict[str, str] = defaultdict(str)
    others = ""
    for statement in tree.body:
        text = ast.dump(statement)
        names = _names_bound(statement)
        others += repr(names or text)  # names as well: their order can matter
        for name in names:
            definitions[f"`{name}`"] += text
    definitions["`import` and other statements"] = others
    return tuple((name, _hex(text.encode())) for name, text in definitions.items()), tuple(_imports_in(nodes))


def _hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _remove_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        node.body = node.body[1:] or [ast.Pass()]


def _names_bound(statement: ast.stmt) -> list[str]:
    """The names that a definition or an assignment binds; none for another statement."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if len(names) == len(targets) and not isinstance(statement, ast.For) else []


def _imports_in(nodes: Iterable[ast.AST]) -> Iterator[_Import]:
    """The imports in a file, also those inside functions, and calls such as ``import_module("helper")``."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (_Import(alias.name, (), 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield _Import(node.module or "", tuple(alias.name for alias in node.names), node.level)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            yield from (_Import(name, (), 0) for name in names if not name.startswith("."))


def _modules_named(module: str, imports: Iterable[_Import], *, is_package: bool) -> Iterator[str]:
    """The modules, or what may be modules, that are imported in a module."""
    parts = module.split(".")
    for imported in imports:
        outer = parts[: len(parts) + is_package - imported.level] if imported.level else []
        base = ".".join([*outer, *([imported.name] if imported.name else [])])
        for name in (base, *(f"{base}.{name}" for name in imported.names)):
            yield name
            # Importing a module runs the packages around it. A paper's imports all of its experiments.
            inside = [] if name.startswith(PAPERS) else name.split(".")[:-1]
            yield from (".".join(inside[: i + 1]) for i in range(len(inside)))
