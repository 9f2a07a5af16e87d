"""Digests of the source code that a program is made of: part of its key in the cache on disk.

A program is the code of its module and of everything that module imports, directly or not, from its own package; and of the
modules that its static configuration comes from (a loss, a kernel). The list is derived from the import statements.

Code is read from files, and files may be edited while a process runs. So the modules of this package are read when they are
loaded (``remember_loaded``, called by every ``@program``): an edit made later does not give old code a new key. Other modules
are read when they are needed, and only if none of them has been written since this one was loaded. Where the source is not
certain (an edited file, an interactive session, a class inside a function, imports of other libraries) the digest is None, and
``program`` uses the text of the traced program as the key instead.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import sys
import sysconfig
import threading
import time
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

OWN = __name__.split(".")[0]
_ROOT = Path(__file__).parents[1]
_COVERED = ("jax", "jaxlib", "numpy", "scipy")  # their versions are part of every key
_STANDARD = sys.stdlib_module_names
_STARTED = time.time()


class _Source(NamedTuple):
    digest: str
    imports: frozenset[str]  # full names of modules, and names that may be modules


_BYTES: dict[str, tuple[str, bytes] | None] = {}  # path and content of every module of this package, as it was loaded
_LOCK = threading.Lock()
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n(]+)|import[ \t]+([\w., \t]+))", re.MULTILINE
)


def remember_loaded() -> None:
    """Read every module of this package that is loaded and was not read yet."""
    with _LOCK:
        for name, module in list(sys.modules.items()):
            if name not in _BYTES and name.split(".")[0] == OWN:
                _BYTES[name] = _content(getattr(module, "__file__", None))


@cache
def digest_of_own_module(name: str) -> str:
    """Digest of a module of this package and all it imports."""
    digest = _digest(name)
    assert digest is not None
    return digest


def digest_of_class(kind: type) -> str | None:
    """Digest of the module of a class and all it imports; None if the class may be something else than its file says."""
    package = kind.__module__.split(".")[0]
    if "<locals>" in kind.__qualname__ or package == "__main__":
        return None
    if package == OWN:
        return digest_of_own_module(kind.__module__)
    module = sys.modules.get(kind.__module__)
    return _digest(kind.__module__) if module is not None and _is_as_written(kind, module) else None


def _digest(name: str) -> str | None:
    """None if some of it cannot be read."""
    remember_loaded()
    found: dict[str, str] = {}
    pending = [name]
    while pending:
        each = pending.pop()
        if each in found:
            continue
        source = _source(each)
        if source is None:
            return None
        found[each] = source.digest
        for imported in source.imports:
            top = imported.split(".")[0]
            if top in _STANDARD or top in _COVERED or (top != OWN and each.split(".")[0] == OWN):
                continue  # what else this package imports does not end up in programs
            part = _own_module(imported) if top == OWN else _loaded_module(imported)
            if part is None or (top != OWN and _is_installed(part)):
                return None
            pending.append(part)
    whole = "\n".join(f"{each} {found[each]}" for each in sorted(found))
    return hashlib.sha256(whole.encode()).hexdigest()


def _source(name: str) -> _Source | None:
    if name.split(".")[0] != OWN:
        path = getattr(sys.modules.get(name), "__file__", None)
        return _read(name, path) if path is not None and _is_unchanged(path) else None
    with _LOCK:
        if name not in _BYTES:  # not loaded yet: it will be loaded from this file
            _BYTES[name] = _content(str(_own_file(name)))
        kept = _BYTES[name]
    return None if kept is None else _own_source(kept[1])


@cache
def _own_source(content: bytes) -> _Source:
    return _Source(hashlib.sha256(content).hexdigest(), own_imports(content))


def _content(path: str | None) -> tuple[str, bytes] | None:
    if path is None or not path.endswith(".py"):
        return None
    try:
        return path, Path(path).read_bytes()
    except OSError:
        return None


def own_imports(content: bytes) -> frozenset[str]:
    """What a module of this package imports: read off its lines, which takes a fiftieth of the time of parsing them."""
    found: set[str] = set()
    for base, names, plain in _IMPORT.findall(content):
        parts = re.sub(rb"#[^\n]*", b"", plain or names).strip(b"() \n").split(b",")
        each = [part.split()[0].decode() for part in parts if part.strip()]
        found.update(f"{base.decode()}.{name}" if base else name for name in each)
    return frozenset(found)


def _read(name: str, path: str | None) -> _Source | None:
    """A module of somebody else, parsed."""
    kept = _content(path)
    try:
        tree = None if kept is None else ast.parse(kept[1])
    except (SyntaxError, ValueError):
        return None
    if kept is None or tree is None:
        return None
    package = name if kept[0].endswith("__init__.py") else name.rpartition(".")[0]
    return _Source(hashlib.sha256(kept[1]).hexdigest(), parsed_imports(tree, package))


def parsed_imports(tree: ast.Module, package: str) -> frozenset[str]:
    """What the statements of a module import."""
    imports: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            imports.update(f"{base}.{alias.name}" for alias in node.names)
    return frozenset(imports)


def _is_unchanged(path: str) -> bool:
    try:
        return os.stat(path).st_mtime < _STARTED
    except OSError:
        return False


@cache
def _own_file(name: str) -> Path | None:
    base = _ROOT.joinpath(*name.split(".")[1:])
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _own_module(imported: str) -> str | None:
    """The module of this package that an import names: ``a.b.c`` is a module, or the name c in the module a.b."""
    while imported:
        if _own_file(imported) is not None:
            return imported
        imported = imported.rpartition(".")[0]
    return None


def _loaded_module(imported: str) -> str | None:
    """The same for modules of others, which must be loaded."""
    while imported:
        if imported in sys.modules:
            return imported
        imported = imported.rpartition(".")[0]
    return None


@cache
def _installed_folders() -> tuple[Path, ...]:
    return tuple(Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib"))


def _is_installed(name: str) -> bool:
    """Whether a module comes from an installed library, whose version is not part of the key."""
    path = getattr(sys.modules.get(name), "__file__", None)
    return path is None or any(folder in Path(path).resolve().parents for folder in _installed_folders())


def _is_as_written(kind: type, module: ModuleType) -> bool:
    """Whether the functions of a class are those that its file holds now."""
    try:
        written = _codes(compile(Path(module.__file__ or "").read_bytes(), module.__file__ or "", "exec", dont_inherit=True))
    except (OSError, SyntaxError, ValueError):
        return False
    members = [_function(each) for each in vars(kind).values()]
    own = [each for each in members if each is not None and each.__code__.co_filename == module.__file__]
    return bool(own) and all(each.__code__ in written for each in own)


def _function(member: Any) -> FunctionType | None:
    member = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return member if isinstance(member, FunctionType) else None


def _codes(code: CodeType) -> set[CodeType]:
    found = {code}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _codes(constant)
    return found
