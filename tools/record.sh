#!/usr/bin/env bash
# What `./assay record` does: writes recorded data anew, one name each. Without a name, lists what there is.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
build=build/${ASSAY_PRESET:-release}
nvcc=${ASSAY_NVCC:-nvcc}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

list() {
  cat <<'TABLE'
name          needs        writes
forms         nvcc         kernels/forms.txt: instruction forms of our kernels
tokens        minutes      tests/data/defect_tokens.txt: findings of known defects, from the tokens it holds
tightness     an hour      tests/data/tightness_run.json and bench/TIGHTNESS.md
page          nothing      bench/TIGHTNESS.md from tests/data/tightness_run.json
stranger      nvcc         tests/data/gla_naive.ptx, gla_naive_backward.ptx
triton        numpy        tests/data/triton_gla_*.safetensors
screenshots   a browser    tests/data/screenshots
digests       a GPU        tests/data/digests_h200.txt: output bits of the cases that it holds
fidelity      a GPU        tests/data/fidelity_h200.txt: results of each instruction form
product       nvcc         tests/data/hopper_gemm.ptx, of tools/hopper/gemm.cu
hopper        sm_90        tests/data/hopper_h200.txt: what programs of tensor copies and clusters leave in memory
approximate   a GPU        tests/data/approximate_digests.bin.gz: approximate instructions on all inputs
edges         sm_90        tests/data/mma_edges_*.bin.gz, approximate_sm90.bin.gz: tensor cores at the edges of their rule
TABLE
}

built() {
  ./assay list kernels >/dev/null  # installs, configures and builds what is missing
  ninja -C "$build" "$@" >&2
}

case ${1:-} in
  '') list ;;
  forms) built forms ;;
  tokens)
    ./assay defects --check tests/data/defect_tokens.txt --tokens "$folder/tokens"
    cp "$folder/tokens" tests/data/defect_tokens.txt ;;
  tightness)
    ./assay fuzz all --cases 5000 --seed 20261122 --json "$folder/run.json"
    python3 - "$folder/run.json" tests/data/tightness_run.json <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
rows = ",\n".join(json.dumps(row, sort_keys=True) for row in run["tightness"])
head = {"kind": run["kind"], "seed": run["seed"], "cases": run["cases"]}
open(sys.argv[2], "w").write(json.dumps(head)[:-1] + ', "tightness": [\n' + rows + "]}\n")
PYTHON
    exec "$0" page ;;
  page)
    built tightness
    "$build/tools/tightness" tests/data/tightness_run.json 3 >"$folder/page"
    cp "$folder/page" bench/TIGHTNESS.md ;;
  stranger)
    for name in gla_naive gla_naive_backward; do
      (cd examples/strangers_gla && "$nvcc" -ptx -lineinfo -arch=compute_80 -o "$folder/ptx" $name.cu)
      sed 's|^\(\t\.file\t[0-9]* "\).*/|\1|' "$folder/ptx" >tests/data/$name.ptx
    done ;;
  triton) python3 examples/triton_gla/numpy_gla.py tests/data ;;
  screenshots) tests/reports/page/page_test.sh "$PWD/$build/src/cli/assay" tests/data/screenshots ;;
  digests)
    built record_digests
    "$build/tools/record_digests" tests/data/digests_h200.txt >"$folder/digests"
    cp "$folder/digests" tests/data/digests_h200.txt ;;
  fidelity)
    built fidelity
    "$build/tools/fidelity/fidelity" --log2 21 --seconds 130 --threads 16 >"$folder/fidelity"
    cp "$folder/fidelity" tests/data/fidelity_h200.txt ;;
  product)
    "$nvcc" -arch=sm_90a -ptx -std=c++17 -o "$folder/product" tools/hopper/gemm.cu
    cp "$folder/product" tests/data/hopper_gemm.ptx ;;
  hopper)
    built hopper_programs
    "$build/tools/hopper/hopper_programs" --backend cuda >"$folder/hopper"
    cp "$folder/hopper" tests/data/hopper_h200.txt ;;
  approximate)
    "$nvcc" -std=c++20 -gencode arch=compute_90,code=compute_90 -O2 -I . -o "$folder/record" tools/record_approximate.cu
    "$folder/record" "$folder/digests.bin"
    gzip -9 -n -c "$folder/digests.bin" >tests/data/approximate_digests.bin.gz ;;
  edges)
    "$nvcc" -std=c++20 -arch=sm_90 -O2 -I . -o "$folder/record" tools/record_sm90.cu
    "$folder/record" "$folder"
    gzip -9 -n -c "$folder/approximate.bin" >tests/data/approximate_sm90.bin.gz
    for file in "$folder"/mma_*.bin; do
      form=${file##*/mma_}
      gzip -9 -n -c "$file" >"tests/data/mma_edges_$form.gz"
    done ;;
  *)
    echo "assay: record: there is no '$1'; there are:" >&2
    list >&2
    exit 2 ;;
esac
