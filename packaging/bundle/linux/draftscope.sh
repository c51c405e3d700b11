#!/bin/sh
# Starts Draftscope from the folder that this file lies in, on the Python inside. -I: neither this system's
# Python settings nor the working folder have a say.
here=$(dirname "$(readlink -f "$0")")
case "${1-}" in
--add-to-desktop | --remove-from-desktop)
    exec "$here/share/desktop.sh" "$1" "${DRAFTSCOPE_FILE:-$here/draftscope}" ;;
esac
exec "$here/python/bin/python3" -I -m draftscope "$@"
