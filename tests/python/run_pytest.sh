#!/usr/bin/env bash
# Runs one file of this folder. $1: the build folder, $2: the file. Status 77: there is no environment to run it in, or
# what the file is about is not installed there.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
python=${ASSAY_PYTHON:-$here/../../build/python_env/bin/python}
if ! "$python" -c 'import numpy, pytest' 2>/dev/null; then
  echo "skipped: $python has no NumPy and pytest (./assay test installs them once; build/python_env.log says why it could not)"
  exit 77
fi
export PYTHONPATH=$1/python ASSAY_BUILD=$1 PYTHONDONTWRITEBYTECODE=1
"$python" -m pytest -q -p no:cacheprovider -rs -W error "$here/$2"
status=$?
[[ $status -ne 5 ]] || status=77  # nothing in it could run
exit $status
