#!/usr/bin/env bash
# The archive that `./assay package` makes: at most 25 MB, as the .deb and the wheel beside it; nothing needed but the C
# library, no symbol newer than glibc 2.34; licences inside; from nothing but it, a verdict, in two seconds of processor time
# with the start; programs run on the stand-in that it holds; a C program by find_package and by pkg-config.
# $1: the folder of archives, $2: the root of the tree. Skipped (77) where no archive was made.
set -euo pipefail
packages=$1 root=$2
archive=$(find "$packages" -maxdepth 1 -name 'assay-*.tar.xz' 2>/dev/null | sort | tail -n 1) || true
[[ -n $archive ]] || { echo "no archive in $packages: ./assay package makes one"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
wrong() { echo "FAILED: $*"; failures=$((failures + 1)); }

bytes=$(stat -c %s "$archive")
((bytes <= 25000000)) || wrong "$archive is $bytes bytes"
# The .deb beside it, and the wheel where one was made.
while read -r other; do
  ((other_bytes = $(stat -c %s "$other"), other_bytes <= 25000000)) || wrong "$other is $other_bytes bytes"
done < <(find "$packages" "$root/build/dist" -maxdepth 1 \( -name 'assay*.deb' -o -name 'assay-*.whl' \) 2>/dev/null)
tar -xJf "$archive" --strip-components=1 -C "$work"
for file in bin/assay lib/libassay.so include/assay_kernels.h lib/cmake/assay/assayConfig.cmake lib/pkgconfig/assay.pc share/man/man1/assay.1 \
  share/bash-completion/completions/assay lib/assay/standin/libassay_cuda.so lib/assay/standin/libassay_watch.so lib/assay/standin/libassay_capture.so \
  lib/assay/standin/libcudart.so.13 share/assay/mpi/assay_mpi.c share/doc/assay/LICENSE share/doc/assay/licences/libmpfr6.txt; do
  [[ -s $work/$file ]] || wrong "no $file"
done

inside=" $(cd "$work/lib" && find . -name '*.so*' -printf '%f ')"
while read -r file; do
  for need in $(objdump -p "$file" | awk '$1 == "NEEDED" {print $2}'); do
    [[ $need =~ ^(ld-linux.*|lib(c|m|dl|rt|pthread)\.so\..*)$ || $inside == *" $need "* ]] || wrong "$(basename "$file") needs $need"
  done
  for version in $(objdump -T "$file" | grep -oE 'GLIBC_2\.[0-9]+' | sort -u); do
    ((${version#GLIBC_2.} <= 34)) || wrong "$(basename "$file") wants $version"
  done
done < <(find "$work/bin" "$work/lib" -type f \( -name '*.so*' -o -name assay \))

# What the machine has too would hide that the package's own is not found.
while read -r name _ path _; do
  [[ $path != /* || $path == "$work"/* || $name =~ ^lib(c|m|dl|rt|pthread)\.so ]] || wrong "the program takes $name from $path"
done < <(ldd "$work/bin/assay")

bare() { (cd "$work" && env -i PATH=/nowhere "$work/bin/assay" "$@"); }
bare --version >/dev/null || wrong "the program does not start"
# Of processor time, children's too, in hundredths: other programs' share of the machine says nothing.
processor_time() { awk '{print $14 + $15 + $16 + $17}' "/proc/$$/stat"; }
before=$(processor_time)
bare verify gla.chunk -T 20 -K 16 -V 8 --backend vm >"$work/out" 2>&1 || wrong "verify: $(tail -n 3 "$work/out")"
spent=$(($(processor_time) - before))
((spent <= 200)) || wrong "$spent hundredths of a second to the first case"
bare verify --ptx "$root/tests/data/gla_naive.ptx" --plan "$root/examples/strangers_gla/plan.json" -T 20 -K 16 -V 8 --backend vm >"$work/out" 2>&1 ||
  wrong "one's own PTX: $(tail -n 3 "$work/out")"

printf '%s\n' 'int cudaMalloc(void**, unsigned long);' 'int main(void) { void* memory = 0; return cudaMalloc(&memory, 64) != 0 || !memory; }' >"$work/ask.c"
if cc -o "$work/ask" "$work/ask.c" -L"$work/lib/assay/standin" -lassay_cuda -Wl,--allow-shlib-undefined 2>"$work/out"; then
  bare run -- "$work/ask" >"$work/out" 2>&1 || wrong "run: $(tail -n 3 "$work/out")"
else
  wrong "no program is linked with the stand-in: $(tail -n 1 "$work/out")"
fi
bare watch "$root/tests/data/gla_naive.ptx" --output "$work/watched.ptx" >"$work/out" 2>&1 || wrong "watch: $(tail -n 3 "$work/out")"

mkdir "$work/use"
cp "$root/examples/c_api/gla.c" "$work/use/"
cat >"$work/use/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.16)
project(use C)
find_package(assay REQUIRED)
add_executable(use gla.c)
target_link_libraries(use PRIVATE assay::assay ${CMAKE_DL_LIBS})
C
if command -v cmake >/dev/null && cmake -S "$work/use" -B "$work/use/build" -DCMAKE_PREFIX_PATH="$work" >"$work/out" 2>&1 &&
  cmake --build "$work/use/build" >>"$work/out" 2>&1; then
  "$work/use/build/use" --plan | grep -q workspace || wrong "the program by find_package does not plan"
else
  wrong "find_package: $(tail -n 5 "$work/out")"
fi
if command -v pkg-config >/dev/null; then
  # shellcheck disable=SC2046 # several words
  cc -o "$work/use/plain" "$work/use/gla.c" $(PKG_CONFIG_PATH=$work/lib/pkgconfig pkg-config --cflags --libs assay) -ldl 2>"$work/out" ||
    wrong "pkg-config: $(cat "$work/out")"
  LD_LIBRARY_PATH=$work/lib "$work/use/plain" --plan | grep -q workspace || wrong "the program by pkg-config does not plan"
fi

((failures == 0)) && echo "$(basename "$archive"): $bytes bytes, as it should be"
exit $((failures > 0))
