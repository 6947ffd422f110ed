#!/bin/sh
# Write requirements/*.txt: every package that is installed, pinned and with the hashes of all its published files,
# so that one lock serves each machine and Python. Compiled on the oldest Python that bcd runs on, since packages
# that are wanted only there (backports) are no burden elsewhere. Nothing that tells where the files came from is kept.
set -eu
cd "$(dirname "$0")/.."

venv=.venv-lock
python=${PYTHON:-python3.11}
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || {
    echo "lock: needs Python 3.11 (set PYTHON to one)" >&2
    exit 1
}
[ -x "$venv/bin/pip-compile" ] || {
    "$python" -m venv "$venv"
    "$venv/bin/pip" --quiet install --upgrade pip pip-tools
}

compile() {
    output=$1
    shift
    CUSTOM_COMPILE_COMMAND="make lock" "$venv/bin/pip-compile" --quiet --upgrade --generate-hashes --strip-extras \
        --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
        --output-file "$output" "$@"
    echo "lock: $output"
}

compile requirements/build.txt requirements/build.in
compile requirements/runtime.txt -c requirements/build.txt pyproject.toml
compile requirements/dev.txt -c requirements/build.txt -c requirements/runtime.txt --extra dev pyproject.toml
