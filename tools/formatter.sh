#!/bin/sh
# Prints the clang-format that formats this tree: version 14, Debian 12's, since versions differ in where they break lines.
# Exit status 1, with a line that says so: there is none.
for program in "${ASSAY_CLANG_FORMAT:-clang-format-14}" clang-format; do
  case $("$program" --version 2>/dev/null) in
    *"version 14."*) command -v "$program"; exit 0 ;;
  esac
done
echo "the tree is formatted with clang-format 14, and there is none here (Debian: apt-get install clang-format-14)" >&2
exit 1
