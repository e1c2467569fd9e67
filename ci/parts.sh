#!/bin/sh
# Parts of the machine that the tests and the judge need: a browser for the pages, bubblewrap for the sandbox.
#     sh ci/parts.sh [browser] [sandbox]      both, if none is named
# Where we may, install them; where not, say how, and go on: the tests that need them are skipped then, except with
# CI=true, where a missing part is a failure.
set -u
wanted="${*:-browser sandbox}"
root() { [ "$(id -u)" = 0 ]; }
has() { command -v "$1" >/dev/null 2>&1; }
wants() { case " $wanted " in *" $1 "*) ;; *) return 1 ;; esac; }
browser() { has chromium || has chromium-browser || has google-chrome; }

# Whether an ordinary user can use bubblewrap: root always can, which says nothing about those who will.
works() {
    if root && has setpriv; then
        setpriv --reuid=65534 --regid=65534 --clear-groups bwrap --unshare-all --ro-bind / / true 2>/dev/null
    else
        bwrap --unshare-all --ro-bind / / true 2>/dev/null
    fi
}

# Ubuntu forbids user namespaces to programs without an AppArmor profile. One for bubblewrap alone allows them to it,
# until the next start of the machine; the rule stays in force for everything else.
allow() {
    root && has apparmor_parser || return 1
    echo "bubblewrap does not work for ordinary users: loading an AppArmor profile that allows it user namespaces"
    printf 'abi <abi/4.0>,\nprofile neuco-bwrap %s flags=(unconfined) {\n  userns,\n}\n' "$(command -v bwrap)" |
        apparmor_parser --replace
}

missing=""
for part in $wanted; do
    case "$part" in
        browser) browser || missing="$missing chromium" ;;
        sandbox) has bwrap || missing="$missing bubblewrap" ;;
        *) echo "no such part: $part; expected browser or sandbox" >&2; exit 2 ;;
    esac
done
if [ -n "$missing" ] && root && has apt-get; then
    echo "installing:$missing"
    # shellcheck disable=SC2086 - two names are two packages
    apt-get update -qq >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && missing=""
fi
if [ -n "$missing" ]; then
    echo "not found, and some tests need it:$missing. On Debian or Ubuntu: sudo apt-get install$missing" >&2
    [ "${CI:-}" != true ]
    exit
fi
if wants sandbox && ! works && ! { allow && works; }; then
    echo "bubblewrap does not work for ordinary users here: user namespaces are forbidden" >&2
    [ "${CI:-}" != true ]
fi
