#!/usr/bin/env python3
"""Writes python/assay/results.py from reports/schema.json: a dataclass for every object of the schema.

    tools/generate_results.py [--check]     --check: says whether the file is as it would be written, and writes nothing
"""
import json
import keyword
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "python" / "assay" / "results.py"

HEAD = '''# Written by tools/generate_results.py from reports/schema.json. Do not edit.
"""Results as plain data: what `assay ... --json` writes, as dataclasses.

`Verification.from_json(document)` reads a parsed document, `.to_json()` gives it back. Documents print as the
command line prints, and as a page in notebooks; everything pickles.
"""
from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from ._record import Document, Record

__all__ = [
{names}
]

'''
WIDTH = 118
LEAST_OF_A_BASE = 5  # fields: a class that has all of another one's is derived from it


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


def wrapped(text, indent="    "):
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def joined(statements):
    """Fields of a class, as many on a line as fit."""
    lines = [""]
    for statement in statements:
        if lines[-1] and len(lines[-1]) + len(statement) + 6 <= WIDTH:
            lines[-1] += f"; {statement}"
        else:
            lines.append(f"    {statement}")
    return "\n".join(lines[1:])


class Generator:
    def __init__(self, schema):
        self.definitions = schema["$defs"]
        self.documents = [row["$ref"].rsplit("/", 1)[1] for row in schema["oneOf"]]
        self.schemas = {}  # name of a class -> its schema
        self.lists = {}  # key -> the lists of words that fields of this name have
        for _ in range(2):  # the second time all lists are known
            self.choices = {}  # "Literal[...]" -> its name
            self.classes = {}  # name -> text, in the order in which they are needed
            for name in self.definitions:
                if name != "number":
                    self.record(camel(name), self.definitions[name], name in self.documents)

    def annotation(self, owner, name, schema):
        """Of a value that `schema` describes."""
        if "$ref" in schema:
            target = schema["$ref"].rsplit("/", 1)[1]
            if target == "number":
                return "float"
            self.record(camel(target), self.definitions[target], target in self.documents)
            return camel(target)
        if "anyOf" in schema:
            inner = [row for row in schema["anyOf"] if row != {"type": "null"}]
            assert len(inner) == 1 and len(schema["anyOf"]) == 2, (owner, name)
            return f"{self.annotation(owner, name, inner[0])} | None"
        if "const" in schema:
            return type(schema["const"]).__name__
        if "enum" in schema:
            return self.choice(owner, name, f"Literal[{', '.join(json.dumps(x) for x in schema['enum'])}]")
        if schema.get("type") == "array":
            return f"list[{self.annotation(owner, singular(name), schema['items'])}]"
        if schema.get("type") == "object":
            values = schema.get("additionalProperties")
            if values:
                return f"dict[str, {self.annotation(owner, singular(name), values)}]"
            self.record(owner + camel(name), schema, False)
            return owner + camel(name)
        return {"string": "str", "integer": "int", "boolean": "bool", "number": "float"}.get(schema.get("type"), "Any")

    def choice(self, owner, name, literal):
        """The name of a list of words: the field's, after the class where others of that name have other words."""
        self.lists.setdefault(name, set()).add(literal)
        alone = len(self.lists[name]) == 1 and name not in self.definitions
        return self.choices.setdefault(literal, camel(name) if alone else owner + camel(name))

    def record(self, name, schema, is_document):
        if name in self.classes:
            return
        self.classes[name] = None  # no class contains itself
        self.schemas[name] = schema
        required = set(schema.get("required", []))
        base = self.base(schema)
        if base:
            self.record(base, self.schemas[base], False)
        inherited = self.schemas[base]["properties"] if base else {}
        fields, said, absent, keys = [], [], [], {}
        for key, value in schema.get("properties", {}).items():
            if key in inherited:
                continue
            annotation = self.annotation(name, key, value)
            python = identifier(key)
            default = ""
            if "const" in value:
                default = f" = {value['const']!r}"
            elif key not in required:
                default = self.default(annotation)
                if default.endswith("None") and not annotation.endswith("None"):
                    annotation += " | None"
                    absent.append(python)
            fields.append(f"{python}: {annotation}{default}")
            if "description" in value:
                said.append(f"{python}: {value['description']}.")
            if python != key:
                keys[python] = key
        head = ", ".join([*(["Document"] if is_document else []), *([base] if base else [])]) or "Record"
        head += f', absent="{" ".join(absent)}"' if absent else ""
        head += f", keys={json.dumps(keys)}" if keys else ""
        text = f"class {name}({head}):\n" + self.documentation(schema.get("description", ""), said) + joined(fields)
        del self.classes[name]
        self.classes[name] = text

    def base(self, schema):
        """The class of most fields, all of which an object of the schema has too."""
        own, required = schema.get("properties", {}), set(schema.get("required", []))

        def is_part(other):
            fields = other.get("properties", {})
            return (
                LEAST_OF_A_BASE <= len(fields) < len(own)
                and all(own.get(key) == value for key, value in fields.items())
                and set(other.get("required", [])) == required & fields.keys()
            )

        found = [name for name, other in self.schemas.items() if is_part(other)]
        return max(found, key=lambda name: len(self.schemas[name]["properties"]), default=None)

    @staticmethod
    def documentation(summary, said):
        if not said:
            return f'    """{summary}"""\n' if summary else ""
        parts = [f'    """{summary}', ""] if summary else ['    """']
        return "\n".join([*parts, wrapped(" ".join(said)), '    """\n'])

    @staticmethod
    def default(annotation):
        if annotation.startswith("list["):
            return " = field(default_factory=list)"
        if annotation.startswith("dict["):
            return " = field(default_factory=dict)"
        return " = None"

    def text(self):
        names = wrapped(", ".join(f'"{name}"' for name in sorted(self.classes)))
        choices = "\n".join(self.assignment(name, literal) for literal, name in self.choices.items())
        return HEAD.replace("{names}", names) + "\n\n\n".join([choices, "\n\n".join(self.classes.values())]) + "\n"

    @staticmethod
    def assignment(name, literal):
        line = f"{name} = {literal}"
        words = wrapped(literal.removeprefix("Literal[").removesuffix("]"))
        return line if len(line) <= WIDTH else f"{name} = Literal[\n{words}\n]"


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
