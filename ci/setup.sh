#!/bin/sh
# Set up the environment of a workflow's job: the project that this file belongs to, at the versions that are tested.
set -eu
cd "$(dirname "$0")/.."
python -m venv "$RUNNER_TEMP/venv"
"$RUNNER_TEMP/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[${1:-test}]"
echo "$RUNNER_TEMP/venv/bin" >>"$GITHUB_PATH"
