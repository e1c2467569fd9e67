#!/bin/sh
# The lower bounds of pyproject.toml, tried: each direct dependency at its oldest, in an environment of its own.
#     sh ci/lowest.sh [FOLDER]
# torch is the exception: it is at the version of constraints.txt.
set -eu
cd "$(dirname "$0")/.."
folder="${1:-build/lowest}"
python="$folder/bin/python"
mkdir -p "$folder"
"${PYTHON:-python3}" -m venv "$folder"
"$python" -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
"$python" -m uv pip compile --quiet pyproject.toml --extra cubes --extra images --extra plots --extra rates --extra dask --extra ci \
    --resolution lowest-direct --output-file "$folder/lowest.txt"
"$python" -m uv pip install --quiet --python "$python" -r "$folder/lowest.txt" -e . "$(grep '^torch==' constraints.txt)" \
    pytest pytest-xdist hypothesis jsonschema
"$python" -m pytest -q -n 2 --dist loadfile -p no:cacheprovider tests/scoring tests/tables tests/records tests/plugins \
    tests/cubes/test_images.py
