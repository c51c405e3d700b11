#!/bin/sh
# Adds Draftscope to the menus of this user's desktop, its icon, and traces that open by a double click; or
# takes all of it away again. The program's file, as the menu shall call it, is the second word.
set -eu
here=$(dirname "$(readlink -f "$0")")
data="${XDG_DATA_HOME:-$HOME/.local/share}"
entry="$data/applications/draftscope.desktop"
icon="$data/icons/hicolor/scalable/apps/draftscope.svg"
mime="$data/mime/packages/draftscope.xml"

case "${1-}" in
--add-to-desktop)
    mkdir -p "${entry%/*}" "${icon%/*}" "${mime%/*}"
    # In quotes, as the desktop entry's rules want it: \ before what means something in them, %% for %, and
    # then every \ twice, as in any of its texts.
    program=$(printf '%s' "$2" | sed -e 's/[\\"`$]/\\&/g' -e 's/%/%%/g' -e 's/\\/\\\\/g')
    EXEC="\"$program\" %f" awk '/^Exec=/ { print "Exec=" ENVIRON["EXEC"]; next } { print }' \
        "$here/draftscope.desktop" > "$entry"
    cp "$here/draftscope.svg" "$icon"
    cp "$here/draftscope-mime.xml" "$mime"
    ;;
--remove-from-desktop)
    rm -f "$entry" "$icon" "$mime"
    ;;
*)
    echo "Usage: desktop.sh --add-to-desktop PROGRAM | --remove-from-desktop" >&2
    exit 2
    ;;
esac
# Desktops without these look for themselves.
for update in "update-desktop-database $data/applications" "update-mime-database $data/mime"; do
    if command -v "${update%% *}" > /dev/null; then
        "${update%% *}" "${update#* }" || true
    fi
done
