# The part `webhooks` of scripts/bench, which reads this file: what deliveries cost those who create,
# what an endpoint that never answers costs the others, and what events that nobody takes cost the
# memory. All functions and settings of scripts/bench are there.

# How many events wait in the run about memory.
undelivered=1000000

# Starts what receives events: it takes them on /hook, and never answers on /tarpit.
start_receiver() {
    receiver_port=$(free_port)
    "$bin/ceiling" --listen "127.0.0.1:$receiver_port" >"$work/receiver.log" 2>&1 &
    receiver=$!
}

end_receiver() {
    if [[ -n $receiver ]]; then
        kill "$receiver" 2>/dev/null || true
        wait "$receiver" 2>/dev/null || true
        receiver=
    fi
}

# Registers an endpoint: URL.
register() {
    local got
    got=$(status_of POST "${collection%message_templates}webhooks" "$token" "{\"url\":\"$1\"}")
    [[ $got == 201 ]] || fail "galley answers $got where an endpoint is to be registered"
}

# How many events the receiver has taken.
taken() {
    local galley_port=$port
    port=$receiver_port
    answer_of GET /taken "$token" | tail -n 1
    port=$galley_port
}

# Creates as fast as they come, with these endpoints: NAME, then their paths at the receiver.
run_deliveries() {
    local name=$1 path before
    shift
    start galley
    for path in "$@"; do
        register "http://127.0.0.1:$receiver_port$path"
    done
    before=$(taken)
    measure "webhooks/$name" "$seconds" "${create[@]}" --connections 256
    awk -v name="$name" -v a="$before" -v b="$(taken)" -v s="$seconds" -v w="$(part_of "$seconds" 10)" \
        'BEGIN { printf "{\"deliveries\":\"%s\",\"per_second\":%.1f}\n", name, (b - a) / (s + w) }' |
        tee -a "$results"
    stop
}

# Many events for an endpoint where nobody listens.
run_undelivered() {
    local kib
    start galley
    register "http://127.0.0.1:1/nobody"
    load seeding "${create[@]}" --requests "$undelivered" --connections 256 >/dev/null
    kib=$(awk '/^VmRSS:/ { print $2 }' "/proc/$server/status")
    echo "{\"undelivered\":$undelivered,\"kib\":$kib}" | tee -a "$results"
    stop
}

run_webhooks() {
    local round
    start_receiver
    for ((round = 1; round <= rounds; round++)); do
        echo "webhooks, round $round of $rounds"
        run_deliveries none
        run_deliveries one /hook
        run_deliveries tarpit /hook /tarpit
    done
    end_receiver
    run_undelivered
}
