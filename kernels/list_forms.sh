#!/bin/sh
# The instruction forms of PTX files, one per line with its count: list_forms.sh FILE...
# Also says, at the end, what else a machine has to know: special registers and directives.
set -eu
LC_ALL=C awk '
  { line = $0; gsub(/%[a-z]+[0-9]+/, "", line) }
  /^[ \t]*(@!?%p[0-9]+[ \t]+)?\{?[ \t]*[a-z][a-z0-9_]*(\.[a-z0-9_:]+)*[ \t;]/ && !/^[ \t]*\./ && !/:$/ {
    text = $0; sub(/^[ \t]*(@!?%p[0-9]+[ \t]+)?\{?[ \t]*/, "", text); sub(/[ \t;].*/, "", text); forms[text]++
  }
  { while (match(line, /%[a-z_]+[a-z0-9_.]*/)) { special[substr(line, RSTART, RLENGTH)]++; line = substr(line, RSTART + RLENGTH) } }
  END {
    for (form in forms) print form, forms[form] | "sort"; close("sort")
    for (name in special) if (name !~ /^%(r|rs|rd|f|fd|p|h)$/) print name, special[name] | "sort"
  }' "$@"
