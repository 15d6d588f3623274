# Sourced by scripts/test: steps with their durations, and lanes, which run beside the script. The
# output of a lane is kept in a file and printed when the lane is finished.

lanes=$(mktemp -d)
declare -A lane_pids=()
failed=0
trap end_lanes EXIT

# Runs a command as a step: TITLE COMMAND… Prints its duration. If it fails, the script goes on, and
# `failed` is 1. A program that hangs fails after MAX_STEP, with all that it has started.
MAX_STEP=30m
step() {
    local title=$1 started=$SECONDS exit_status output
    shift
    [[ $(type -t "$1") != file ]] || set -- timeout --verbose --kill-after=30 "$MAX_STEP" "$@"
    output=$(mktemp -p "$lanes")
    printf '\n== %s\n' "$title"
    # Not in a condition: bash would ignore -e inside.
    set +e
    (
        set -e
        "$@"
    ) 2>&1 | tee "$output"
    exit_status=${PIPESTATUS[0]}
    set -e
    conclude "$title" "$started" "$exit_status" "$output"
    rm "$output"
}

# Records the result of a step: TITLE STARTED EXIT_STATUS OUTPUT.
conclude() {
    local outcome="$((SECONDS - $2)) s"
    if (($3 != 0)); then
        failed=1
        outcome+=", FAILED"
        {
            printf '\n== failed: %s, the end of its output\n' "$1"
            tail -n 80 "$4"
        } >>"$lanes/failures"
    fi
    echo "== $1: $outcome"
    echo "$1: $outcome" >>"$lanes/durations"
}

# Starts a lane: NAME COMMAND…
begin() {
    local name=$1
    shift
    set -m # a process group of its own, so that it can be ended as a whole
    (
        failed=0
        "$@"
    ) >"$lanes/$name.log" 2>&1 </dev/null &
    set +m
    lane_pids[$name]=$!
}

# Waits for a lane and prints its output: NAME.
finish() {
    local exit_status=0
    wait "${lane_pids[$1]}" || exit_status=$?
    unset "lane_pids[$1]"
    cat "$lanes/$1.log"
    ((exit_status == 0)) || failed=1
}

# Runs tests and keeps their results for the totals: COMMAND…
with_totals() { timeout --verbose --kill-after=30 "$MAX_STEP" "$@" 2>&1 | tee -a "$lanes/results"; }

# Prints the totals of all tests. Skipped tests are failures.
print_totals() {
    printf '\n== totals\n'
    awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
         END { printf "%d passed, %d failed, %d skipped\n", passed, failed, ignored; exit failed + ignored > 0 || passed == 0 }' \
        "$lanes/results" || failed=1
}

# Prints the end of each failed step's output again: a long log may be kept in part only.
print_failures() { [[ ! -f $lanes/failures ]] || cat "$lanes/failures"; }

print_durations() {
    printf '\n== durations\n'
    cat "$lanes/durations"
    echo "all: $SECONDS s"
}

# Ends what still runs when the script is interrupted. A program has a process group of its own, to which
# `timeout` passes the signal.
end_lanes() {
    local pid
    for pid in "${lane_pids[@]}"; do
        pgrep --pgroup "$pid" | xargs --no-run-if-empty --max-args=1 pkill --parent || true
        kill -- "-$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$lanes"
}
