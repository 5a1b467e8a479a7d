"""The written contract: docs/json.md and docs/schemas against what the code can print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema  # type: ignore[import-untyped] # it brings no types
import pytest

import nereus_cli
from nereus_cli.cli.exits import MEANINGS
from nereus_cli.domain.message import State
from nereus_cli.domain.outcome import Code, Reason

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "json.md").read_text()
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "docs" / "schemas").glob("*.json")}
SOURCE = "".join(path.read_text() for path in Path(nereus_cli.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_schema_is_sound_and_on_the_page(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["properties"]["schema"]["const"] == f"nereus.{name}/1" == SCHEMAS[name]["$id"]
    assert f"(schemas/{name}.json)" in PAGE


def test_everything_the_code_names_has_a_schema() -> None:
    named = set(re.findall(r'"schema": "nereus\.([\w-]+)/1"', SOURCE)) | {"prepared"}
    assert named == set(SCHEMAS)


def test_every_error_is_on_the_page_with_its_status() -> None:
    codes = set(re.findall(r'Failure\(\s*"([A-Z_]+)"', SOURCE))
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", PAGE, re.MULTILINE))
    assert codes - {reason.value for reason in Reason} <= rows.keys()
    assert rows.keys() <= codes
    assert set(map(int, rows.values())) <= MEANINGS.keys()


def test_every_attention_is_on_the_page() -> None:
    codes = set(re.findall(r'Attention\(\s*"([A-Z_]+)"', SOURCE))
    assert {code for code in codes if f"| `{code}` |" not in PAGE} == set()


def test_the_vocabularies_are_those_of_the_domain() -> None:
    receipt, message = SCHEMAS["receipt"], SCHEMAS["message"]
    assert set(receipt["properties"]["reason"]["enum"]) == {*Reason, None}
    assert set(message["$defs"]["state"]["enum"]) == set(State)
    assert set(message["properties"]["attempts"]["items"]["properties"]["code"]["enum"]) == {*Code, None}
