#!/bin/sh
# Makes the head from nothing and measures it: make.sh TARGET WORK [OUT]
# TARGET is SmolLM2-135M-Instruct.Q4_1.gguf. WORK is a folder for intermediate files (1 GB). The head and its card are
# written to OUT (default: WORK/out).
# Finished steps are skipped. After an interruption, even kill -9, the same command continues.
# TOKENS: number of tokens that the model writes. STEPS: training steps. DEVICE=cpu: no GPU, far slower.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -ge 2 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
target=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "$2" "${3:-$2/out}"
work=$(cd "$2" && pwd)
out=$(cd "${3:-$2/out}" && pwd)
export PYTHONDONTWRITEBYTECODE=1

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
[ -f "$work/words.json" ] || "$app" -m words --work "$work" --target "$target"
[ -f "$work/text.npz" ] ||
    "$train" -m text --work "$work" --target "$target" --device "${DEVICE:-cuda}" --tokens "${TOKENS:-8300000}"
"$train" -m train --work "$work" --target "$target" --device "${DEVICE:-cuda}" --steps "${STEPS:-4100}"
if older "$work/head.gguf" "$work/head.pt"; then
    "$train" -m export --work "$work" --target "$target"
fi
if older "$work/table.md" "$work/head.gguf"; then
    "$app" -m measure --work "$work" --target "$target"
fi
"$app" -m card --work "$work" --out "$out"
