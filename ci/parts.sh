#!/bin/sh
# Parts of the machine that the tests need: a browser for the pages, bubblewrap for the sandbox. Where we may, install
# them; where not, say how, and go on: the tests that need them are skipped then, except with CI=true, where a missing
# part is a failure.
set -u
browser() {
    for name in chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}
sandbox() {
    # Ubuntu forbids user namespaces, and so bubblewrap, to ordinary users; where we are root we may allow them.
    if [ "$(id -u)" = 0 ] && [ -w /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
        echo 0 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns || true
    fi
    command -v bwrap >/dev/null 2>&1
}
missing=""
browser || missing="chromium"
sandbox || missing="$missing bubblewrap"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing for the tests: $missing"
    # shellcheck disable=SC2086 - two names are two packages
    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
echo "not found, and some tests need it: $missing. On Debian or Ubuntu: sudo apt-get install $missing" >&2
[ "${CI:-}" != true ]
