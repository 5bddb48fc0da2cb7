#!/usr/bin/env python3
"""What the README and the manual show: every command that stands in a block is one that the program takes, and those on cases
that take seconds run to a verdict and name the lines of kernels that are shown below them. Links lead to files, and the table of kernels is that of the program. $1: the program, $2: the root of the tree."""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

PROGRAM, ROOT = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
PAGES = [pathlib.Path(ROOT) / "README.md", *sorted(pathlib.Path(ROOT, "docs").glob("*.md")), pathlib.Path(ROOT, "examples/ci/README.md"),
         pathlib.Path(ROOT, "CONTRIBUTING.md")]
#: Of these the whole run is quick where its sizes are small.
QUICK = {"verify", "trace", "replay"}
MOST_TOKENS = 1000


def commands_of(text):
    """Of each command in a block its words, and what of its output is shown below it."""
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        commands = []
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\$ )?(?:\./)?assay ([a-z].*?)(?:\s+#.*)?$", line.strip())
            if found:
                commands.append((shlex.split(found.group(1)), []))
            elif commands:
                commands[-1][1].append(line)
        yield from commands


def run(words, folder):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=folder)


def places_in(text):
    """Lines of kernels' sources: kernels/gla/chunk.cu:27"""
    return set(re.findall(r"[\w/]+\.cuh?:\d+", text))


def complaint(words, shown, helps, folder):
    command, options = words[0], [word.split("=")[0] for word in words[1:] if word.startswith("--") and len(word) > 2]
    if command in ("test", "lint", "package", "wheel", "record", "COMMAND"):
        return None  # the launcher's own
    if command not in helps:
        done = run([command, "--help"], folder)
        helps[command] = done.stdout if done.returncode == 0 else None
    if helps[command] is None:
        return "no such command"
    before = options[:words.index("--")] if "--" in words else options
    for option in before:
        if not re.search(re.escape(option) + r"\b", helps[command]):
            return f"{command} has no option {option}"
    tokens = [int(words[i + 1]) for i, word in enumerate(words) if word in ("-T", "--length")]
    files = {"--inputs", "--ptx", "--plan", "--at", "--json", "--report"} & set(options)
    batches = [int(words[i + 1]) for i, word in enumerate(words) if word == "-B"]
    if command not in QUICK or files or "@I1" in " ".join(words) or max(tokens, default=64) > MOST_TOKENS or max(batches, default=1) > 8:
        return None
    done = run([*words, "--backend", "vm"] if "--backend" not in words else words, folder)
    if done.returncode not in (0, 1):
        return f"status {done.returncode}: {done.stderr.strip()}"
    other = places_in("\n".join(shown)) - places_in(done.stdout)
    return f"says nothing of {', '.join(sorted(other))}" if other else None


def table_of_kernels():
    """What the README's table of operators says of an operator, and what the program has."""
    shown = {}
    for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|[^|]*\| ([\w, ]+) \|$", (pathlib.Path(ROOT) / "README.md").read_text(), re.MULTILINE):
        shown.update({name: set(row[1].split(", ")) for name in re.findall(r"\w+", row[0])})
    had = {}
    for kernel in json.loads(run(["list", "kernels", "--json"], ROOT).stdout)["rows"]:
        operator, mode = kernel["kernel"].split(".")
        had.setdefault(operator, set()).add(mode)
    return [f"README.md: of {name} the table has {sorted(shown.get(name, []))}, the program {sorted(had.get(name, []))}"
            for name in sorted({*shown, *had}) if shown.get(name) != had.get(name)]


def main():
    wrong, count, helps = table_of_kernels(), 0, {}
    with tempfile.TemporaryDirectory() as folder:
        for page in PAGES:
            text = page.read_text()
            for words, shown in commands_of(text):
                count += 1
                if (why := complaint(words, shown, helps, folder)) is not None:
                    wrong.append(f"{page.relative_to(ROOT)}: assay {' '.join(words)}: {why}")
            for target in re.findall(r"\]\(([^)#\s]+)", text):
                if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                    wrong.append(f"{page.relative_to(ROOT)}: {target} is not there")
    print("\n".join(wrong) or f"{count} commands, as shown")
    return 1 if wrong or count < 20 else 0


sys.exit(main())
