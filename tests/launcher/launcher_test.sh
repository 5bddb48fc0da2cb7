#!/usr/bin/env bash
# The launcher in a tree of its own, with stand-ins for every tool it calls. $1: the launcher.
set -uo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src" "$tree/tools"
cp "$1" "$tree/assay"
touch "$tree/CMakeLists.txt"
failures=0

# Stand-ins: each writes what it was asked to calls.log; ninja "builds" a program that prints its arguments.
tool() { printf '#!/bin/bash\necho "%s $*" >>%q\n%s\n' "$1" "$tree/calls.log" "$2" >"$tree/tools/$1"; chmod +x "$tree/tools/$1"; }
tool dpkg-query 'for name in "$@"; do [[ $name == -* || $name == "$MISSING" || $name == *\$* ]] || echo "$name installed"; done'
tool cmake 'mkdir -p build/release; touch build/release/build.ninja'
tool ninja '[[ -n ${BROKEN:-} ]] && exit 1
mkdir -p "$2/src/cli"; printf "#!/bin/bash\nprintf \"[%%s]\" \"\$@\"; exit 7\n" >"$2/src/cli/assay"; chmod +x "$2/src/cli/assay"'
tool ctest 'echo "scale ${ASSAY_TEST_SCALE:-1}, long ${ASSAY_TEST_LONG:-0}" >>"$(dirname "$0")/../calls.log"
[[ $* == *" -N -L ^vm$ -L ^long$"* ]] && printf "  Test  #%s: campaign_test.%s\n" 7 1 8 2
[[ $* == *" -N "* ]] && exit
echo "100% tests passed, 0 tests failed out of 3"'
tool nvcc 'exit 0'
tool python3 '[[ $* == *ensurepip* ]] && exit 1
[[ $* == *-m\ venv* ]] && exit 1
exit 0'
tool apt-get '[[ $* == *update ]] || exit 1'

run() { output=$(MISSING=${missing:-none} PATH=$tree/tools:$PATH "$tree/assay" "$@" 2>"$tree/errors"); status=$?; }
expect() {
  local what=$1
  shift
  "$@" || { echo "FAILED: $what; status $status, output: $output, errors: $(cat "$tree/errors")"; failures=$((failures + 1)); }
}
said() { grep -qF -- "$1" "$tree/errors"; }
called() { grep -qF -- "$1" "$tree/calls.log"; }
is() { [[ $1 == "$2" ]]; }

run verify 'a b' ''
expect 'the first start configures' called 'cmake --preset release'
expect 'the first start builds' called "ninja -C $tree/build/release"
expect 'arguments arrive whole' is "$output" '[verify][a b][]'
expect 'the exit status is that of the program' is "$status" 7

: >"$tree/calls.log"
run list
expect 'with nothing changed nothing is called' is "$(cat "$tree/calls.log")" ''
expect 'with nothing changed nothing is said' is "$(cat "$tree/errors")" ''

sleep 0.02
touch "$tree/src/changed.cpp"
ln -sf "$tree/assay" "$tree/tools/elsewhere"
output=$(cd / && MISSING=none PATH=$tree/tools:$PATH elsewhere x 2>"$tree/errors")
status=$?
expect 'a changed file is built, also through a link from another folder' called "ninja -C $tree/build/release"
expect 'a link from another folder starts the program' is "$output" '[x]'

: >"$tree/calls.log"
sleep 0.02
rm "$tree/src/changed.cpp"
run list
expect 'a removed file is built' called ninja

touch "$tree/src/changed.cpp"
export BROKEN=1
run list
expect 'a failed build is status 3' is "$status" 3
expect 'a failed build is said' said 'assay: the build failed'
run list
expect 'a failed build is tried again' is "$status" 3
unset BROKEN

touch "$tree/src/changed.cpp"
missing=libmpfr-dev
run list
expect 'missing packages are asked for' called 'install -y --no-install-recommends libmpfr-dev'
expect 'packages that cannot be installed are status 2' is "$status" 2
expect 'packages that cannot be installed are named' said 'apt-get install libmpfr-dev'
missing=none

export ASSAY_NVCC=/no/such/nvcc
run list
expect 'a wrong ASSAY_NVCC is named' said 'ASSAY_NVCC=/no/such/nvcc does not compile CUDA to PTX'
expect 'a wrong ASSAY_NVCC is status 2' is "$status" 2
unset ASSAY_NVCC

run test -R numerics
expect 'test builds everything' called "all"
expect 'test hands its options to ctest' called '-R numerics'
expect 'the closing line of ctest stays' is "$output" '100% tests passed, 0 tests failed out of 3'
expect 'test has the status of ctest' is "$status" 0
expect 'a plain test is short' called 'scale 1, long 0'

mkdir -p "$tree/tests/vm" "$tree/tests/docs"
echo 'assay_test(vm_test SOURCES a_test.cpp)' >"$tree/tests/vm/CMakeLists.txt"
echo 'add_test(NAME docs_test COMMAND python3)' >"$tree/tests/docs/CMakeLists.txt"
: >"$tree/calls.log"
run test vm -R checks
expect "a folder's tests are built, and the program" called 'tests/vm/all assay'
expect 'they are run by their label, without campaigns' called '-L ^vm$ -R checks -LE ^long$'
expect 'the campaigns are named, each once' said 'left out: campaign_test, which take longer; ./assay test runs them, and ./assay test vm --all'
expect 'nothing else is built' is "$(grep -cE 'ninja.* all( |$)' "$tree/calls.log")" 0
: >"$tree/calls.log"
run test docs --long
expect 'where tests are no programs of their own all is built' called "--quiet all"
expect '--long has the campaigns too' is "$(grep -c -- -LE "$tree/calls.log")" 0
run test vm --all
expect '--all has the campaigns too, as they are' is "$(grep -c -- -LE "$tree/calls.log")" 0
expect 'at their usual counts' called 'scale 1, long 0'
run test nothing
expect 'what is no folder is named, and those there are' said 'tests/nothing is no folder of tests; there are: docs vm'
expect 'and is bad input' is "$status" 2
run wheel "$tree/made"
expect 'the wheel has what packages have' called 'assay_package'
expect 'the wheel is made of it' called "wheel_backend.py $tree/build/release/wheel/libassay.so $tree/build/release/wheel/standin $tree/made"
run test --long
expect '--long is for the test programs' called 'scale 10, long 1'

export ASSAY_CHROMIUM=/no/such/browser
: >"$tree/calls.log"
rm -f "$tree/build/.browser_tried" "$tree/build/.formatter_tried"
run test
expect 'the tests ask for a browser' called 'install -y --no-install-recommends chromium'
expect 'a browser that cannot be installed is said' said 'the test of report pages will be skipped'
expect 'the tests ask for the formatter, each apart' called 'install -y --no-install-recommends clang-format-14'
expect 'a formatter that cannot be installed is said' said 'the test of the format will be skipped'
expect 'and stops no test' is "$status" 0
rm -f "$tree/build/.python_tried" "$tree/build/.python_env_tried"
run test
expect 'the tests ask for a Python environment' called 'python3 -m venv'
expect 'one that cannot be made is said' said 'the tests of the Python package will be skipped'
expect 'and stops no test either' is "$status" 0
: >"$tree/calls.log"
run test
expect 'it is asked for once' is "$(grep -c apt-get "$tree/calls.log")" 0
rm -f "$tree/build/.browser_tried"
sleep 0.02
touch "$tree/src/changed.cpp"
run list
expect 'the program alone needs none' is "$(grep -c apt-get "$tree/calls.log")" 0
unset ASSAY_CHROMIUM

[[ $failures -eq 0 ]] && echo "the launcher keeps its promises"
exit $((failures > 0))
