"""`python -m assay.triton [--arch sm_90] [--checks all] program.py ...` or `-m module ...`.

Ends as the program does; with status 1 where the program ended well and a launch had a finding.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from assay.triton import start


def main():
    parser = argparse.ArgumentParser(prog="python -m assay.triton", description="Runs a program on the machine.")
    parser.add_argument("--arch", default=os.environ.get("ASSAY_TRITON") or "sm_90", help="sm_80, sm_89, sm_90, H200, ..")
    parser.add_argument("--checks", default=os.environ.get("ASSAY_TRITON_CHECKS") or "none", help="none, all, or names")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module's name")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if "ASSAY_TRITON" not in os.environ:  # else the line at interpreter start has done it
        try:
            start.when_imported(given.arch, checks=given.checks)
        except ValueError as error:
            parser.error(str(error))
    sys.argv = [given.program, *given.arguments]
    if given.module:
        sys.path[0] = os.getcwd()
        runpy.run_module(given.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(given.program))
        runpy.run_path(given.program, run_name="__main__")
    from assay.triton import session

    machine = session.active()
    if machine is not None and machine.findings:
        sys.exit(1)


main()
