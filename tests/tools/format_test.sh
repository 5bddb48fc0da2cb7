#!/bin/sh
# Every source is formatted, within 110 columns, and its functions fit a screen, as `./assay lint` leaves it.
# Exit status 77, with a line that says why, where there is no formatter of the tree's version or no list of its files.
cd "$(dirname "$0")/../.." || exit 1
missing=$(tools/formatter.sh 2>&1 >/dev/null) || { echo "format_test: SKIPPED, the format was not checked: $missing"; exit 77; }
git rev-parse >/dev/null 2>&1 || { echo "format_test: SKIPPED, the format was not checked: no git checkout"; exit 77; }
exec tools/lint.sh --all --check --only-format
