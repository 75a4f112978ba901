#!/usr/bin/env bash
# Links a folder of programs to the user's cache folder, where it lies under a digest of what it is built from. What is not
# there yet is built; what was not asked for in 30 days is removed.
#
#     cached.sh FOLDER SOURCE ... -- COMMAND ...     the command builds into the folder that is added as its last argument
set -euo pipefail
folder=$1
shift
sources=()
while [ "$1" != -- ]; do
    sources+=("$1")
    shift
done
shift
command -v go >/dev/null || { echo "$folder is built from Go modules, and there is no go on the PATH." >&2; exit 3; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/licorne
digest=$({ go version && sha256sum "${sources[@]}"; } | sha256sum | cut -c1-16)
kept=$cache/$(echo "$folder" | tr / -)-$digest
if [ ! -d "$kept" ]; then
    echo "Building $folder from Go modules; the first time this takes minutes ..." >&2
    mkdir -p "$cache"
    made=$(mktemp -d "$cache/building-XXXXXX")
    trap 'rm -rf "$made"' EXIT
    "$@" "$made"
    mv -T "$made" "$kept" 2>/dev/null || [ -d "$kept" ] # another process may have been first
fi
touch "$kept"
find "$cache" -mindepth 1 -maxdepth 1 -name 'build*' -mtime +30 -exec rm -rf {} +
mkdir -p "$(dirname "$folder")"
[ -L "$folder" ] || rm -rf "$folder"
ln -sfn "$kept" "$folder"
