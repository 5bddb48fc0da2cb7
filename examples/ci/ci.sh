#!/usr/bin/env bash
# What a pipeline runs in a repository of kernels; github.yml and gitlab.yml call it. Copy it to .assay/ci.sh.
#   .assay/ci.sh        compiles the kernels that .assay/kernels.txt lists, and fuzzes them; its exit status is assay's:
#                       0 nothing new, 1 a new finding or too few cases, 2 bad input
# .assay/kernels.txt: a line "SOURCE.cu PLAN.json [more options of nvcc]" for each kernel; # begins a comment.
# Environment: ASSAY (the program: assay), NVCC (nvcc), ASSAY_TIME (120s) or in its place ASSAY_CASES, ASSAY_STATE (state: what is kept from run to run),
# ASSAY_OUT (assay-out: what is shown and kept), ASSAY_MAIN (set on the main branch: this run becomes what later ones know),
# ASSAY_OPTIONS (more options of `assay fuzz`, as --min-cases 20 or --seed 1).
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
assay=${ASSAY:-assay} nvcc=${NVCC:-nvcc} state=${ASSAY_STATE:-state} out=${ASSAY_OUT:-assay-out}
mkdir -p "$state" "$out" || exit 2

stop() { echo "$*" >&2; exit 2; }
kernels=() number=0
while read -r source plan options || [[ -n $source ]]; do # the last line may lack its end
  number=$((number + 1)) options=${options%$'\r'} plan=${plan%$'\r'} # lines of Windows
  [[ -n ${source%$'\r'} && $source != \#* ]] || continue
  [[ -e $source ]] || stop ".assay/kernels.txt:$number: there is no $source"
  [[ -e $plan ]] || stop ".assay/kernels.txt:$number: after the source stands its plan; there is no '$plan'"
  ptx=$out/ptx/${source%.cu}.ptx
  mkdir -p "$(dirname "$ptx")"
  # shellcheck disable=SC2086 # options are several words
  "$nvcc" -ptx -lineinfo -arch=compute_80 $options -o "$ptx" "$source" || stop ".assay/kernels.txt:$number: $source was not compiled"
  kernels+=(--ptx "$ptx" --plan "$plan")
done <.assay/kernels.txt
[[ ${#kernels[@]} -gt 0 ]] || stop ".assay/kernels.txt lists no kernel"

budget=(--time "${ASSAY_TIME:-120s}")
[[ -z ${ASSAY_CASES:-} ]] || budget=(--cases "$ASSAY_CASES")
known=()
[[ ! -e $state/baseline.json ]] || known=(--baseline "$state/baseline.json")
annotations=()
[[ -z ${GITHUB_ACTIONS:-} ]] || annotations=(--annotations github)
status=0
# A signal to this script alone ends the run too, marked as interrupted; whoever waits is woken by it once.
trap 'kill -TERM "$run" 2>/dev/null' INT TERM
# shellcheck disable=SC2086 # options are several words
"$assay" fuzz "${kernels[@]}" --backend vm "${budget[@]}" --db "$state/assay.db" "${known[@]}" "${annotations[@]}" \
  --source-root . --json "$out/result.json" --junit "$out/junit.xml" --sarif "$out/findings.sarif" \
  --comment "$out/comment.md" --report "$out/report" ${ASSAY_OPTIONS:-} &
run=$!
wait "$run" || status=$?
while kill -0 "$run" 2>/dev/null; do status=0; wait "$run" || status=$?; done
trap - INT TERM
if [[ -n ${ASSAY_MAIN:-} && -e $out/result.json && $status -le 1 ]]; then
  cp "$out/result.json" "$state/baseline.json"
  "$assay" report "$state/assay.db" --trend --out "$out/trend" >/dev/null
fi
exit "$status"
