#!/bin/sh
# Set up the environment of a workflow's job, at the versions that are tested: the project that this file belongs to with
# the extras that are named, or a wheel of it.
#     sh ci/setup.sh [EXTRAS | dist/FILE.whl]
set -eu
cd "$(dirname "$0")/.."
if [ -f "${1:-}" ]; then set -- "$1"; else set -- -e ".[${1:-test}]"; fi
python -m venv "$RUNNER_TEMP/venv"
"$RUNNER_TEMP/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "$@"
echo "$RUNNER_TEMP/venv/bin" >>"$GITHUB_PATH"
