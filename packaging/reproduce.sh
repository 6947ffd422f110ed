#!/bin/sh
# Make the binary twice and compare, bit for bit: here, and in a copy of the tree at another path under another umask,
# hash seed, time zone, language and day. reproduce.sh PYTHON
set -eu
cd "$(dirname "$0")/.."

python=$(command -v "$1")
case $python in /*) ;; *) python=$PWD/$python ;; esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" packaging/pack.py --output "$work/one"
mkdir "$work/a copy"
cp -R LICENSE bcd packaging requirements "$work/a copy"
find "$work/a copy" -name '__pycache__' -prune -exec rm -rf {} +
find "$work/a copy" -type f -exec touch -d '2001-02-03' {} +
(
    umask 077
    cd /
    PYTHONHASHSEED=12345 TZ=Pacific/Auckland LC_ALL=C "$python" "$work/a copy/packaging/pack.py" --output "$work/two"
)
cmp "$work/one" "$work/two" || {
    echo "reproduce: the two differ; compare them by zipfile and by the index in bundle_index" >&2
    exit 1
}
cmp "$work/one.licences.txt" "$work/two.licences.txt"
echo "reproduce: the same, $(sha256sum "$work/one" | cut -c1-64)"
