#!/bin/sh
# Try the neuco that is installed, offline, in a folder that knows nothing of a checkout: are the boards there, and can it
# score a file?
set -eu
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export NEUCO_OFFLINE=1 NEUCO_CACHE="$folder/cache" XDG_DATA_HOME="$folder/data"
neuco --version
neuco doctor
neuco leaderboard show mini
neuco embed --method averaging --dataset olinda --out mine.npz
neuco score --embeddings mine.npz --suite olinda
