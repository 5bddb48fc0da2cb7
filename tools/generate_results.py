#!/usr/bin/env python3
"""Writes python/assay/results.py from reports/schema.json: a dataclass for every object of the schema.

    tools/generate_results.py [--check]     --check: says whether the file is as it would be written, and writes nothing
"""
import json
import keyword
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "python" / "assay" / "results.py"

HEAD = '''# Written by tools/generate_results.py from reports/schema.json. Do not edit.
"""Results as plain data: what `assay ... --json` writes, as dataclasses.

`Verification.from_json(document)` reads a parsed document, `.to_json()` gives it back. Documents print as the
command line prints, and as a page in notebooks; everything pickles.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ._record import Document, Record

__all__ = {names}

'''


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def singular(name):
    if name.lower().endswith("axes"):
        return name[:-2] + "is"
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def identifier(key):
    """A name of JSON as Python has it: "-inf" is minus_inf."""
    name = re.sub(r"\W", "_", re.sub(r"^-", "minus_", key))
    return name + "_" if keyword.iskeyword(name) else name


class Generator:
    def __init__(self, schema):
        self.definitions = schema["$defs"]
        self.documents = [row["$ref"].rsplit("/", 1)[1] for row in schema["oneOf"]]
        self.classes = {}  # name -> text, in the order in which they are needed
        for name in self.definitions:
            if name != "number":
                self.record(camel(name), self.definitions[name], name in self.documents)

    def kind(self, owner, name, schema):
        """Annotation, and the expression that says how it is read (see _record.py)."""
        if "$ref" in schema:
            target = schema["$ref"].rsplit("/", 1)[1]
            if target == "number":
                return "float", "float"
            self.record(camel(target), self.definitions[target], target in self.documents)
            return camel(target), camel(target)
        if "anyOf" in schema:
            inner = [row for row in schema["anyOf"] if row != {"type": "null"}]
            assert len(inner) == 1 and len(schema["anyOf"]) == 2, (owner, name)
            annotation, how = self.kind(owner, name, inner[0])
            return f"{annotation} | None", f'("optional", {how})'
        if "const" in schema:
            return type(schema["const"]).__name__, "None"
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(x) for x in schema['enum'])}]", "None"
        if schema.get("type") == "array":
            annotation, how = self.kind(owner, singular(name), schema["items"])
            return f"list[{annotation}]", f'("list", {how})'
        if schema.get("type") == "object":
            values = schema.get("additionalProperties")
            if values:
                annotation, how = self.kind(owner, singular(name), values)
                return f"dict[str, {annotation}]", f'("map", {how})'
            self.record(owner + camel(name), schema, False)
            return owner + camel(name), owner + camel(name)
        plain = {"string": "str", "integer": "int", "boolean": "bool", "number": "float"}.get(schema.get("type"), "Any")
        return plain, "float" if plain == "float" else "None"

    def record(self, name, schema, is_document):
        if name in self.classes:
            return
        self.classes[name] = None  # no class contains itself
        required = set(schema.get("required", []))
        lines, kinds = [], []
        for key, value in schema.get("properties", {}).items():
            annotation, how = self.kind(name, key, value)
            python = identifier(key)
            default = ""
            if "const" in value:
                default = f" = {value['const']!r}"
            elif key not in required:
                default = self.default(annotation)
                if default.endswith("None") and not annotation.endswith("None"):
                    annotation += " | None"
            lines.append(f"    {python}: {annotation}{default}")
            if "description" in value:
                lines.append(f'    """{value["description"]}"""')
            kinds.append(f'        "{python}": ("{key}", {how}),')
        text = "@dataclass(kw_only=True)\n"
        text += f"class {name}({'Document' if is_document else 'Record'}):\n"
        text += f'    """{schema.get("description", singular(name))}"""\n\n'
        text += "\n".join(lines) + "\n\n    _kinds = {\n" + "\n".join(kinds) + "\n    }\n"
        del self.classes[name]
        self.classes[name] = text

    @staticmethod
    def default(annotation):
        if annotation.startswith("list["):
            return " = field(default_factory=list)"
        if annotation.startswith("dict["):
            return " = field(default_factory=dict)"
        return " = None"

    def text(self):
        names = "[\n" + "".join(f'    "{name}",\n' for name in sorted(self.classes)) + "]"
        return HEAD.replace("{names}", names) + "\n" + "\n\n".join(self.classes.values())


def main(arguments):
    text = Generator(json.loads((ROOT / "reports" / "schema.json").read_text())).text()
    if arguments == ["--check"]:
        if not TARGET.exists() or TARGET.read_text() != text:
            print(f"{TARGET.relative_to(ROOT)} is not what reports/schema.json says: run tools/generate_results.py")
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
