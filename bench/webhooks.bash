# The webhooks part of scripts/bench, which sources this file: the effect of deliveries on creates, of an
# endpoint that never responds on other endpoints, and of undelivered events on memory. Uses the
# functions and variables of scripts/bench.

# Number of undelivered events in the memory run.
undelivered=1000000

# Starts the webhook receiver: it accepts events on /hook and never responds on /tarpit.
start_receiver() {
    receiver_port=$(free_port)
    "$bin/ceiling" --listen "127.0.0.1:$receiver_port" >"$work/receiver.log" 2>&1 &
    receiver=$!
}

stop_receiver() {
    if [[ -n $receiver ]]; then
        kill "$receiver" 2>/dev/null || true
        wait "$receiver" 2>/dev/null || true
        receiver=
    fi
}

# Registers an endpoint: URL.
register_endpoint() {
    local got
    got=$(status_of POST "${collection%message_templates}webhooks" "$token" "{\"url\":\"$1\"}")
    [[ $got == 201 ]] || fail "galley: expected status 201 for the registration of an endpoint, got $got"
}

# Prints the number of events that the receiver has received.
received_events() {
    local galley_port=$port
    port=$receiver_port
    response_of GET /received "$token" | tail -n 1
    port=$galley_port
}

# Measures creates with these endpoints: NAME, then their paths at the receiver.
run_deliveries() {
    local name=$1 path before
    shift
    start galley
    for path in "$@"; do
        register_endpoint "http://127.0.0.1:$receiver_port$path"
    done
    before=$(received_events)
    measure "webhooks/$name" "$seconds" "${create[@]}" --connections 256
    awk -v name="$name" -v a="$before" -v b="$(received_events)" -v s="$seconds" -v w="$(divide "$seconds" 10)" \
        'BEGIN { printf "{\"deliveries\":\"%s\",\"per_second\":%.1f}\n", name, (b - a) / (s + w) }' |
        tee -a "$results"
    stop
}

# Measures how fast one endpoint gets events that already exist, on PostgreSQL. The limit of the endpoint
# is far beyond that.
run_postgres_deliveries() {
    local before
    start_receiver
    create_database
    GALLEY_WEBHOOKS_PER_SECOND=1000 start galley
    register_endpoint "http://127.0.0.1:$receiver_port/hook"
    load seeding "${create[@]}" --requests 20000 --connections 256 >/dev/null
    before=$(received_events)
    sleep "$seconds"
    awk -v a="$before" -v b="$(received_events)" -v s="$seconds" \
        'BEGIN { printf "{\"deliveries\":\"postgres\",\"per_second\":%.1f}\n", (b - a) / s }' |
        tee -a "$results"
    stop
    stop_receiver
}

# Measures memory with many events for an unreachable endpoint.
run_undelivered() {
    local kib
    start galley
    register_endpoint "http://127.0.0.1:1/unreachable"
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
    stop_receiver
    run_undelivered
}
