"""The JSON parser is loaded alone, and is the package's own whatever is imported first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loop_core.fastjson import from_json

ROOT = Path(__file__).resolve().parents[2]
SAME = "import pydantic_core; assert pydantic_core.from_json is from_json; assert from_json(b'[1]') == [1]"
MODEL = """
import pydantic
class Model(pydantic.BaseModel):
    x: int
assert Model.model_validate_json('{"x": 1}').x == 1
"""
REFUSING = """
from importlib.machinery import ExtensionFileLoader as Loader
found = Loader.exec_module
def refuse(self, module):
    if "pydantic_core" not in module.__name__:
        return found(self, module)
    Loader.exec_module = found
    raise ImportError("the package first")
Loader.exec_module = refuse
"""


def ran(code: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=ROOT,
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["", "import pydantic_core", MODEL, REFUSING])
def test_the_parser_is_the_package_s_own(first: str) -> None:
    ran(f"{first}\nfrom loop_core.fastjson import from_json\n{SAME}\n{MODEL}")


def test_the_package_is_not_loaded_for_it() -> None:
    ran("import sys, loop_core.fastjson; assert 'pydantic_core' not in sys.modules")
    ran(f"{REFUSING}\nimport sys, loop_core.fastjson; assert 'pydantic_core' in sys.modules")


def test_what_holds_no_json_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="EOF"):
        from_json(b"{")
