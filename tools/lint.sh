#!/usr/bin/env bash
# What `./assay lint` does: formats the changed files, then looks at them.
#   lint.sh [--all] [--check] [--no-tidy] [--only-format] [FILE...]
#   --all      every source of the tree; by default those that differ from the branch `main` (or from HEAD, on main)
#   --check    formats nothing, says what it would format
#   --no-tidy  without clang-tidy, which takes seconds for each file
#   --only-format  the format and the lengths of lines and functions alone, as the test `format` asks (the rules are tests of their own)
# All but tests/ptx/programs, whose lines recorded PTX names.
# Looks at: the format, lines past 110 columns, functions past 80 lines (of kernels 100; tests may have longer tables), clang-tidy's findings, the table of folders (tests/layering.cmake), the rows of
# tests/broken.md, functions of one name in sources that a build of release compiles together (tests/unity_names.cmake, where
# there is such a build). Exit status 1: something was found; 2: a tool is missing.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit 2

all='' check='' tidy=yes rules=(layering broken_rows) files=()
for option in "$@"; do
  case $option in
    --all) all=yes ;;
    --check) check=yes ;;
    --no-tidy) tidy='' ;;
    --only-format) tidy='' rules=() ;;
    -*) echo "assay: lint: unknown option $option; known are --all, --check, --no-tidy, --only-format" >&2; exit 2 ;;
    *.cpp | *.h | *.cu | *.cuh) files+=("$option") ;;
    *) echo "assay: lint: $option is no source, left as it is" >&2 ;;
  esac
done
formatter=$(tools/formatter.sh) || exit 2
[[ -z $tidy ]] || command -v clang-tidy >/dev/null || { echo "assay: lint needs clang-tidy, or --no-tidy" >&2; exit 2; }

if [[ ${#files[@]} -eq 0 ]]; then
  if [[ -n $all ]]; then
    listed=$(git ls-files --cached --others --exclude-standard)
  else
    base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
    listed=$(git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard)
  fi
  mapfile -t files < <(grep -E '\.(cpp|h|cu|cuh)$' <<<"$listed" | grep -v -e /fuzz_corpus/ -e "^tests/ptx/programs/" | sort -u)
fi
status=0
wrong() { echo "lint: $*"; status=1; }

if [[ ${#files[@]} -gt 0 ]]; then
  if [[ -n $check ]]; then
    while IFS= read -r file; do wrong "$file is not formatted: ./assay lint $file"; done \
      < <("$formatter" --dry-run "${files[@]}" 2>&1 | grep -oE '^[^ :]+:[0-9]+:[0-9]+: warning: code should be clang-formatted' |
          cut -d: -f1 | sort -u)
  else
    "$formatter" -i "${files[@]}"
  fi
  while IFS= read -r line; do wrong "past 110 columns: ${line:0:100} ..."; done \
    < <(LC_ALL=C.UTF-8 grep -HnE '^.{111,}' "${files[@]}")
  while IFS= read -r line; do wrong "$line"; done \
    < <(printf '%s\n' "${files[@]}" | grep -v '^tests/' | xargs -r awk -f tools/long_functions.awk)
fi

[[ ${#rules[@]} -eq 0 || ! -e build/release/CMakeCache.txt ]] || rules+=(unity_names)
for rule in "${rules[@]}"; do
  said=$(cmake -DBUILD=build/release -P tests/$rule.cmake 2>&1) || wrong "$rule: $said"
done

# Each source by itself, as the preset debug compiles it.
if [[ -n $tidy ]]; then
  mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep '\.cpp$')
  if [[ ${#sources[@]} -gt 0 ]]; then
    cmake --preset debug -B build/lint -DCMAKE_CXX_COMPILER_LAUNCHER= >build/lint.log 2>&1 || { tail -n 5 build/lint.log >&2; exit 2; }
    printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/lint --quiet 2>/dev/null |
      grep -E '(warning|error):' | sort -u >build/lint.tidy
    while IFS= read -r line; do wrong "$line"; done <build/lint.tidy
  fi
fi
[[ $status -ne 0 ]] || echo "lint: ${#files[@]} files, nothing found"
exit $status
