#!/usr/bin/env python3
"""A thousand invocations (of a usual run of the tests, the first 200) that cannot work, or are cut short: misspelt
options, senseless values, files that are none, folders in their place, full disks, closed pipes, limits, signals. Each ends with the right status and, where it is refused, one line.

    malformed_test.py PROGRAM [SEED [ONLY]]      ONLY: the number of the one that is run
"""
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.realpath(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ONLY = int(sys.argv[3]) if len(sys.argv) > 3 else None
COUNT = 1000 if os.environ.get("ASSAY_TEST_LONG") or ONLY is not None else 200
SMALL = "-B 1 -T 3 -H 1 -K 16 -V 8 --backend vm --threads 1 --decay none".split()
VERIFY = ["verify", "gla.fused_recurrent", *SMALL]
FUZZ = ["fuzz", "gla.fused_recurrent", "--backend", "vm", "--jobs", "1", "--db", "", "--cases", "3", "--seed", "1"]
RESULTS = ["--json", "--junit", "--sarif", "--comment"]
#: What a run says every ten seconds, on a machine that is slow.
PROGRESS = re.compile(r"assay: \d+ cases?, \d+ findings?, \d+ s")
NONSENSE = ["", "-", "--", "x", "1e999", "-1", "nan", "0x", "1,,2", "\n", "\x07", "%s%n", "../..", "/", "99999999999999999999", "ä", "'", '"', "=",
            "{}", "[]", "null", "a" * 5000]


def run(words, stdin=subprocess.DEVNULL, **options):
    return subprocess.run([PROGRAM, *words], stdin=stdin, capture_output=True, timeout=120, env=ENVIRONMENT, **options)


def hear_interrupts():
    """What a shell starts in the background ignores them, and hands that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def options_of(command):
    text = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True).stdout
    valued = re.findall(r"^  (?:-\w,)?(--[a-z-]+) [A-Z]", text, re.MULTILINE)
    return sorted(set(valued)), sorted(set(re.findall(r"--[a-z][a-z-]+", text)))


def misspelt(word, draw):
    at = draw.randrange(3, len(word))
    how = draw.randrange(3)
    if how == 0:
        return word[:at] + word[at + 1:]
    if how == 1:
        return word[:at] + draw.choice("qxz") + word[at:]
    return word[:at] + draw.choice("qxz") + word[at + 1:]


class Case:
    """What is run, and what may come of it."""

    def __init__(self, name, words, statuses=(2,), lines=1, **how):
        self.name, self.words, self.statuses, self.lines, self.how = name, words, statuses, lines, how

    def complaint(self):
        done = self.start()
        err = done.stderr.decode(errors="replace")
        if "internal error" in err or "terminate called" in err or "AddressSanitizer" in err:
            return f"a fault of the program's own: {err[-300:]}"
        if done.returncode not in self.statuses:
            return f"status {done.returncode}, expected one of {self.statuses}: {err[-300:]}"
        if done.returncode == 2 and self.lines is not None:
            own = [line for line in err.splitlines() if line.strip() and not PROGRESS.fullmatch(line)]
            if len(own) != self.lines or not own[0].startswith("assay: "):
                return f"{len(own)} lines for {self.lines}: {err[-300:]}"
        return None

    def start(self):
        delay = self.how.get("signal_after")
        if delay is not None:
            process = subprocess.Popen([PROGRAM, *self.words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=ENVIRONMENT, cwd=self.how["cwd"], preexec_fn=hear_interrupts)
            time.sleep(delay)
            process.send_signal(self.how["signal"])
            out, err = process.communicate(timeout=120)
            return subprocess.CompletedProcess(self.words, process.returncode, out, err)
        if self.how.get("closed"):
            process = subprocess.Popen([PROGRAM, *self.words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=ENVIRONMENT, cwd=self.how["cwd"])
            process.stdout.close()
            err = process.stderr.read()
            return subprocess.CompletedProcess(self.words, process.wait(timeout=120), b"", err)
        if self.how.get("full"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *self.words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=120,
                                      env=ENVIRONMENT, cwd=self.how["cwd"])
            return done
        limit = self.how.get("limit")
        return run(self.words, cwd=self.how["cwd"], preexec_fn=(lambda: resource.setrlimit(*limit)) if limit else None)


def cases(draw, folder):
    commands = {name: options_of(name) for name in
                ["verify", "fuzz", "trace", "replay", "sweep", "mutate", "report", "check", "inspect", "decode", "list", "defects", "run"]}
    made = {"folder": folder, "empty": folder / "empty", "text": folder / "text", "binary": folder / "binary", "gone": folder / "gone"}
    (folder / "empty").write_bytes(b"")
    (folder / "text").write_text("{\"schema\": 1, \"kind\": ")
    (folder / "binary").write_bytes(bytes(draw.randrange(256) for _ in range(2000)))
    files = [str(path) for path in made.values()]
    here = {"cwd": folder}
    while True:
        kind = draw.randrange(10)
        command = draw.choice(list(commands))
        valued, all_options = commands[command]
        if kind == 0:
            word = misspelt(draw.choice([o for o in all_options if len(o) > 5]), draw)
            if word not in all_options and not any(o.startswith(word) for o in all_options):
                yield Case("misspelt option", [command, word, "1"], **here)
        elif kind == 1:
            yield Case("misspelt command", [misspelt("--" + command, draw)[2:] + "q", *SMALL], **here)
        elif kind == 2:
            # Of a file's option any text is a name: its folder may be there, or its file may be made.
            option = draw.choice([o for o in commands["verify"][0] if o in ("--batch", "--length", "--heads", "--value-heads", "--key-dim",
                                  "--value-dim", "--dtype", "--gate-dtype", "--decay", "--values", "--direction", "--backend",
                                  "--arch", "--parameter", "--layout", "--without", "--set", "--fail-on", "--annotations", "--checks")])
            value = draw.choice([n for n in NONSENSE if n not in ("--", "-") and not n.startswith("-")])
            yield Case("senseless value", ["verify", "gla.fused_recurrent", f"{option}={value}"], statuses=(0, 2), **here)
        elif kind == 3:
            file = draw.choice(files)
            words = draw.choice([["report", file], ["verify", "gla.chunk", "--inputs", file], ["verify", "--ptx", file, "--plan", file],
                                 ["fuzz", "--ptx", file, "--plan", file], ["check", file], ["decode", file], ["inspect", file],
                                 ["fuzz", "gla.chunk", "--baseline", file], ["capsule", "show", file], ["report", file, "--trend"],
                                 ["replay", file], ["trace", file]])
            statuses = (1, 2) if words[0] == "decode" else (2,)
            yield Case("a file that is none", words, statuses=statuses, lines=None if words[0] == "decode" else 1, **here)
        elif kind == 4:
            option = draw.choice(RESULTS)
            where = draw.choice([str(folder), str(folder / "gone" / "x"), "/proc/nothing/x", str(folder / "empty" / "x")])
            yield Case("a result that cannot be written", [*draw.choice([VERIFY, FUZZ]), option, where], **here)
        elif kind == 5:
            yield Case("a full disk", [*draw.choice([VERIFY, FUZZ]), draw.choice(RESULTS), "/dev/full"], **here)
        elif kind == 6:
            words = draw.choice([VERIFY, ["list", draw.choice(["operators", "kernels", "causes"])], ["verify", "--help"]])
            how = draw.choice(["full", "closed"])
            yield Case(f"standard output is {how}", words, statuses=(2,) if how == "full" else (0, 2, -signal.SIGPIPE), **{how: True}, **here)
        elif kind == 7:
            number = draw.choice([signal.SIGINT, signal.SIGTERM])
            words = ["fuzz", "gla.fused_recurrent", "--backend", "vm", "--jobs", "1", "--db", draw.choice(["", "x.db"]), "--time", "20s"]
            yield Case("a signal", words, statuses=(128 + number, -number), lines=None, signal=number,
                       signal_after=draw.uniform(0, 0.4), **here)
        elif kind == 8:
            limit = draw.choice([(resource.RLIMIT_FSIZE, (100, 100)), (resource.RLIMIT_NOFILE, (8, 8)), (resource.RLIMIT_NPROC, (1, 1))])
            words = draw.choice([VERIFY + ["--json", "limited.json"], FUZZ[:-4] + ["--cases", "2", "--json", "limited.json"]])
            yield Case("a limit", words, statuses=(0, 2), limit=limit, **here)
        else:
            token = list("gla.chunk/B1/T80/H2/K64/V32/bf16/g-fp32/ladder:8/s42/h0")
            for _ in range(draw.randrange(1, 4)):
                token[draw.randrange(10, len(token))] = draw.choice("/:,@xX-\n#é")
            yield Case("a token", ["replay", "".join(token), "-T", "1"], **here)


def main():
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        chosen = []
        for case in cases(draw, folder):
            chosen.append(case)
            if len(chosen) == COUNT:
                break
        numbered = [(i, c) for i, c in enumerate(chosen) if ONLY is None or i == ONLY]
        wrong, counts = 0, {}
        with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) // 2)) as pool:
            for (i, case), complaint in zip(numbered, pool.map(lambda item: item[1].complaint(), numbered)):
                counts[case.name] = counts.get(case.name, 0) + 1
                if complaint:
                    wrong += 1
                    print(f"{i} {case.name}: {[w[:60] for w in case.words]}: {complaint[:400]!r}", flush=True)
        print(f"{len(numbered)} invocations, {wrong} wrong; " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
        return 1 if wrong else 0


ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
sys.exit(main())
