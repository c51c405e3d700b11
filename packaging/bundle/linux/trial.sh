# Runs inside the clean system: opens the window of the program that the first word names, waits until the demo
# has answered, and quits it by its key. Prints what the trial reads; the program's own words go to a file.
set -eu
program=$1
export DISPLAY=:7 DRAFTSCOPE_HOME=/tmp/home
# Without -noreset it begins anew, and refuses connections, whenever its only client leaves.
Xvfb "$DISPLAY" -screen 0 1280x800x24 -noreset -nolisten tcp -fbdir /tmp > /tmp/xvfb.log 2>&1 &

# wait_for COMMAND...: until it succeeds, five minutes at most, and only while the program runs.
wait_for() {
    end=$(($(date +%s) + 300))
    until "$@" > /dev/null 2>&1; do
        [ "$(date +%s)" -lt "$end" ] && kill -0 "${draftscope:-$$}" 2> /dev/null || { echo "gave up waiting for: $*" >&2; cat /tmp/said >&2; exit 1; }
        sleep 0.05
    done
}
# The answers that were recorded to their end.
answers() {
    cat "$DRAFTSCOPE_HOME"/data/chats/*/*.jsonl 2> /dev/null | grep -c '^{"finish_reason":"' || true
}
answered() {
    [ "$(answers)" -gt "$before" ]
}

wait_for xdotool getdisplaygeometry
before=$(answers)
begin=$(date +%s%N)
"$program" --demo > /tmp/said 2>&1 &
draftscope=$!
wait_for xdotool search --onlyvisible --name Draftscope
echo "window $((($(date +%s%N) - begin) / 1000000))"
wait_for answered
echo "answer $((($(date +%s%N) - begin) / 1000000))"
xdotool search --onlyvisible --name Draftscope windowfocus --sync key ctrl+q
code=0
wait "$draftscope" || code=$?
echo "code $code"
