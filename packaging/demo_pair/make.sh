#!/bin/sh
# Makes the demo pair from nothing and measures it: make.sh WORK [OUT]
# WORK is any scratch folder. Given again after an interruption, the same command goes on from the last checkpoint.
# OUT is where the files go, resources/demo_pair unless given.
# To train for longer, set TARGET or DRAFTS (below); WORK/target-warm.pt, copied over WORK/target.pt, takes the
# target back to where its learning rate began to fall.
set -eu
[ $# -ge 1 ] || { echo "usage: $0 WORK [OUT]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${2:-$root/resources/demo_pair}
mkdir -p "$1" "$out"
work=$(cd "$1" && pwd)
out=$(cd "$out" && pwd)
: "${TARGET:=--steps 2000 --cool-steps 480 --long-steps 200 --grow-step 400 --middle-step 400}"
: "${DRAFTS:=--steps 350 --cool-steps 160 --long-steps 30}"
export GOMP_SPINCOUNT=1000 PYTHONDONTWRITEBYTECODE=1

if [ ! -f "$work/venv/made" ]; then
    "${PYTHON:-python3}" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install -q -r "$here/requirements.txt"
    touch "$work/venv/made"
fi
train="$work/venv/bin/python"
app="$root/.venv/bin/python" # `make ready` sets it up

cd "$here"
[ -f "$work/corpus.npz" ] || "$train" corpus.py --work "$work"
# shellcheck disable=SC2086 # the options are words
"$train" train.py target --work "$work" $TARGET
# shellcheck disable=SC2086
"$train" train.py drafts --work "$work" $DRAFTS
"$train" export.py --work "$work" --out "$work/pair"
"$train" reference.py --work "$work"
"$app" check.py --work "$work" --pair "$work/pair" > "$work/check.txt" || { cat "$work/check.txt" >&2; exit 1; }
cat "$work/check.txt"
"$app" evaluate.py --pair "$work/pair" --table "$work/table.md"
"$train" card.py --work "$work" --out "$out"
