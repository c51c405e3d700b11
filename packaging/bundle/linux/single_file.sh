#!/bin/sh
# Draftscope in one file: unpacks itself once, into the cache, and runs from there. What follows the last line
# is the tarball.
set -eu
name=@NAME@
sha256=@SHA256@
self=$(readlink -f "$0")
programs="${XDG_CACHE_HOME:-$HOME/.cache}/draftscope/programs"
home="$programs/$name"

fail() {
    printf 'draftscope: %s\n' "$@" >&2
    exit 1
}

tarball() {
    tail -n +@LINES@ "$self"
}

unpack() {
    for tool in tar xz sha256sum; do
        command -v "$tool" > /dev/null || fail "This file unpacks itself with $tool, which was not found: install it."
    done
    [ "$(tarball | sha256sum | cut -c1-64)" = "$sha256" ] || fail "This file is damaged: download it again."
    mkdir -p "$programs"
    new=$(mktemp -d "$programs/.new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    trap 'exit 130' INT TERM HUP
    printf 'draftscope: unpacking into %s, once\n' "$home" >&2
    tarball | tar -xJf - -C "$new" || fail "It cannot be unpacked: free @MEGABYTES@ MB in $programs, or set XDG_CACHE_HOME."
    # Another start may have been first; its folder is as good.
    mv -T "$new"/* "$home" 2> /dev/null || [ -x "$home/draftscope" ] || fail "$home cannot be written."
    rm -rf "$new"
    trap - EXIT INT TERM HUP
}

# Other versions leave, unless one runs.
remove_others() {
    for folder in "$programs"/*; do
        [ "$folder" = "$home" ] || ls -l /proc/[0-9]*/exe 2> /dev/null | grep -qF -- "-> $folder/" || rm -rf "$folder"
    done
}

if [ ! -x "$home/draftscope" ]; then
    unpack
    remove_others
fi
export DRAFTSCOPE_FILE="$self"
exec "$home/draftscope" "$@"
