"""The program `assay`, out of the library that the package carries: `assay ...` once the wheel is installed, or
`python -m assay.program ...`."""
import ctypes
import os
import pathlib
import signal
import sys


def main():
    library = pathlib.Path(__file__).parent / "lib" / "libassay.so"
    # Ctrl-C and a closed pipe mean what they mean to a program, not to an interpreter.
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    words = [os.fsencode(word) for word in ["assay", *sys.argv[1:]]]
    begin = ctypes.CDLL(str(library)).assay_main
    sys.exit(begin(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))


if __name__ == "__main__":
    main()
