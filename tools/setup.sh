#!/bin/sh
# Set up one part of the virtual environment: setup.sh DIR runtime|bcd|dev. Called by make, in the tree's root.
# Everything comes from the lock files, by hash; no index is named, pip asks the one that it is set up for.
set -eu

venv=$1
part=$2

say() { printf 'set-up: %s\n' "$*"; }

fail() {
    printf 'set-up: %s\n' "$@" >&2
    exit 1
}

as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

install_debs() {
    say "installing $* (apt)"
    # The lists are often missing in a container, and fetching them may fail where the package is at hand.
    DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null 2>&1 || true
}

# The first Python that is new enough; PYTHON in the environment goes before all.
find_python() {
    for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$python"
            return
        fi
    done
}

quietly() {
    if ! "$@" >"$venv/setup.log" 2>&1; then
        tail -n 20 "$venv/setup.log" >&2
        fail "that failed: $*" "the whole log is in $venv/setup.log"
    fi
}

make_environment() {
    python=$(find_python)
    if [ -z "$python" ] && as_root; then
        install_debs python3 python3-venv
        python=$(find_python)
    fi
    [ -n "$python" ] || fail "bcd needs Python 3.11 or newer; none was found (set PYTHON to one)" \
        "on Debian and Ubuntu: sudo apt-get install python3 python3-venv"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        if as_root; then install_debs python3-venv; fi
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "$("$python" --version) cannot make virtual environments: its venv module lacks pip" \
                "on Debian and Ubuntu: sudo apt-get install python3-venv"
    fi
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    mkdir "$venv"
    quietly "$python" -m venv "$venv"
}

install_locked() {
    say "installing $(grep -c '^[a-z].*==' "$1") packages from $1"
    quietly "$venv/bin/python" -m pip install --no-input --require-hashes --only-binary :all: -r "$1"
}

case $part in
runtime)
    make_environment
    install_locked requirements/build.txt
    install_locked requirements/runtime.txt
    ;;
bcd)
    quietly "$venv/bin/python" -m pip install --no-input --no-deps --no-build-isolation --no-index -e .
    ;;
dev)
    install_locked requirements/dev.txt
    ;;
*)
    fail "no such part: $part"
    ;;
esac
pwd >"$venv/.stamp-$part"
