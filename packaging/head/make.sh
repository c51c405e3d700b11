#!/bin/sh
# Makes the head from nothing and measures it: make.sh TARGET WORK [OUT]
# TARGET is SmolLM2-135M-Instruct.Q4_1.gguf, WORK a folder for all that is in between (15 GB), OUT the folder where the
# head and its card go, WORK/out unless given.
# What is done is skipped: after an interruption, even kill -9, the same command goes on. A step that gets SIGTERM
# saves what it has and ends. Text and training come in turns, so that there is always a best head so far.
# ROUNDS: tokens to have, steps to have trained, and how many of these, the last, learn to be accepted.
# UNTIL=train ends after the training. THREADS=2, DEVICE=cuda: of the training.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -ge 2 ] || { sed -n '2,9s/^# //p' "$0" >&2; exit 2; }
target=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "$2/shards" "${3:-$2/out}"
work=$(cd "$2" && pwd)
out=$(cd "${3:-$2/out}" && pwd)
: "${ROUNDS:=200000,400,0 600000,1200,0 1200000,2400,0 2000000,4200,0 3000000,7500,1500}"
: "${GOMP_SPINCOUNT:=0}"
export GOMP_SPINCOUNT PYTHONDONTWRITEBYTECODE=1

if [ ! -f "$work/venv/made" ]; then
    "${PYTHON:-python3}" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install -q -r "$here/requirements.txt"
    touch "$work/venv/made"
fi
train="$work/venv/bin/python"
app="$root/.venv/bin/python" # `make ready-dev` sets it up

older() { # whether file $1 is missing or older than $2
    [ ! -f "$1" ] || [ -n "$(find "$2" -newer "$1")" ]
}

cd "$here"
[ -f "$work/target-16bit.gguf" ] || "$app" -m target "$target" "$work/target-16bit.gguf"
for round in $ROUNDS; do
    tokens=${round%%,*} rest=${round#*,}
    "$app" -m text --work "$work" --tokens "$tokens"
    "$train" -m train --work "$work" --target "$target" --steps "${rest%,*}" --cool "${rest#*,}" \
        --threads "${THREADS:-1}" --device "${DEVICE:-cpu}"
done
[ "${UNTIL:-}" != train ] || exit 0
if older "$work/head.gguf" "$work/head.pt"; then
    "$train" -m export --work "$work" --target "$target"
fi
if older "$work/table.md" "$work/head.gguf"; then
    "$app" -m measure --work "$work" --target "$target"
fi
"$app" -m card --work "$work" --out "$out"
