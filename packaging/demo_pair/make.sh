#!/bin/sh
# Makes the demo pair from nothing and measures it: make.sh [WORK [OUT]]
# WORK holds corpus, checkpoints and everything in between: draftscope/demo-pair in the cache directory unless given.
# OUT is where the finished files go, resources/demo_pair unless given.
# What is done is skipped. After an interruption the same command goes on from the last checkpoint, which is at most
# ten minutes old. DEVICE=cuda trains on a GPU.
# To train for longer, set TARGET or DRAFTS (below); WORK/target-warm.pt, copied over WORK/target.pt, takes the
# target back to where its learning rate began to fall.
# BEGIN=FOLDER goes on from the pair in FOLDER, with its tokenizer, instead of from nothing.
# UNTIL=train ends when target and drafts are trained.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/draftscope/demo-pair}
out=${2:-$root/resources/demo_pair}
mkdir -p "$work" "$out"
work=$(cd "$work" && pwd)
begin=${BEGIN:+--begin=$(cd "$BEGIN" && pwd)}
out=$(cd "$out" && pwd)
: "${TARGET:=--steps 9000 --cool-steps 2200 --long-steps 500 --grow-step 600 --middle-step 600}"
: "${DRAFTS:=--steps 3000 --cool-steps 1200 --long-steps 150}"
: "${DEVICE:=cpu}"
export GOMP_SPINCOUNT=1000 PYTHONDONTWRITEBYTECODE=1

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
[ -f "$work/library.jsonl" ] || "$app" -m base.library --work "$work"
[ -z "$begin" ] || [ -f "$work/begun.txt" ] || sha256sum < "${begin#--begin=}/target.gguf" | cut -c 1-64 > "$work/begun.txt"
[ -f "$work/corpus.npz" ] || "$train" -m texts.corpus --work "$work" ${begin:+"$begin"}
# shellcheck disable=SC2086 # the options are words
"$train" -m training.train target --work "$work" --device "$DEVICE" ${begin:+"$begin"} $TARGET
# shellcheck disable=SC2086
"$train" -m training.train drafts --work "$work" --device "$DEVICE" ${begin:+"$begin"} $DRAFTS
[ "${UNTIL:-}" != train ] || exit 0
if older "$work/pair/target.gguf" "$work/target.pt" || older "$work/pair/draft.gguf" "$work/drafts.pt"; then
    "$train" -m training.export --work "$work" --out "$work/pair"
fi
if older "$work/check.txt" "$work/pair/target.gguf" || older "$work/check.txt" "$work/pair/draft.gguf"; then
    "$train" -m judging.reference --work "$work"
    "$app" -m judging.check --work "$work" --pair "$work/pair" > "$work/check.new" || { cat "$work/check.new" >&2; exit 1; }
    mv "$work/check.new" "$work/check.txt"
fi
cat "$work/check.txt"
if older "$work/table.md" "$work/check.txt"; then
    "$app" -m judging.evaluate --pair "$work/pair" --work "$work" --table "$work/table.md"
fi
"$train" card.py --work "$work" --out "$out"
