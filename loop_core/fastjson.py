"""`from_json`: the JSON parser of pydantic_core, without the rest of that package.

The package's own `__init__` also makes every type of its schemas, which nothing here uses and which costs ten times the
parser. So the extension module is loaded alone, under its own name: a later import of the package finds it there.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

PACKAGE, EXTENSION = "pydantic_core", "pydantic_core._pydantic_core"


def load() -> Any:
    """The module that holds the parser: the extension alone, or the package where that cannot be."""
    return _alone() or import_module(PACKAGE)


def _alone() -> ModuleType | None:
    if PACKAGE in sys.modules or EXTENSION in sys.modules:
        return sys.modules.get(EXTENSION)
    package = find_spec(PACKAGE)
    spec = PathFinder.find_spec(EXTENSION, package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        return None
    module = sys.modules[EXTENSION] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError:  # a release whose extension asks for its package
        del sys.modules[EXTENSION]
        return None
    return module


from_json = load().from_json
"""A JSON value from text or bytes; `ValueError` where they hold none. `allow_partial` reads a cut prefix."""
