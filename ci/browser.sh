#!/bin/sh
# The pages are tested in a real browser. Where we may, install it; where not, say how, and go on:
# the tests that need it are skipped then, except with CI=true, where a missing part is a failure.
set -u
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing chromium for the tests of the pages"
    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0
fi
echo "no browser found: the tests of the pages need one. On Debian or Ubuntu: sudo apt-get install chromium" >&2
[ "${CI:-}" != true ]
