# The tail part of scripts/bench, which sources this file: the slowest requests at full load, at 70 % of
# it, with many templates, and beside the load of another account. Uses the functions and variables of
# scripts/bench.

# Credentials of a second account.
neighbour_key=
neighbour_token=

# Prints the rate of the last measurement.
last_rate() { tail -n 1 "$results" | sed -E 's/.*"rate":([0-9.]+).*/\1/'; }

# Measures creates as fast as possible, then at 70 % of that rate on a schedule: SERVER.
measure_full_and_most() {
    local rate
    measure "tail/$1/full" "$seconds" "${create[@]}" --connections 256
    rate=$(last_rate)
    measure "tail/$1/most" "$seconds" "${create[@]}" --connections 256 \
        --rate "$(awk -v r="$rate" 'BEGIN { print r * 0.7 }')"
}

create_neighbour() {
    neighbour_key=$(random_hex)
    neighbour_token=$(random_hex)
    "$galley" account create neighbour --store "$(store_address)" --key "$neighbour_key" \
        --token "$neighbour_token" >/dev/null || fail "the second account was not created"
}

# Measures a light, steady load while the first account creates as fast as it can: LABEL, then options of
# the load generator.
measure_beside_creates() {
    local label=$1 crowd
    shift
    load crowd "${create[@]}" --connections 256 --seconds "$(awk -v s="$seconds" 'BEGIN { print s * 1.1 + 1 }')" \
        >/dev/null &
    crowd=$!
    measure "$label" "$seconds" --connections 16 "$@"
    wait "$crowd" || fail "$label: the load of the first account failed"
}

# Records anonymous and file-backed memory of the server under test.
record_tail_memory() {
    awk '/^RssAnon:/ { anon = $2 } /^RssFile:/ { file = $2 }
        END { printf "{\"tail_anon_kib\":%d,\"tail_file_kib\":%d}\n", anon, file }' "/proc/$server/status" |
        tee -a "$results"
}

# Keeps the server under test running under a NAME, for `select_server`; `cleanup` stops it if a run fails.
park() { servers[$1]=$server ports[$1]=$port server=; }

# Selects a parked server, which is no longer parked: NAME.
unpark() {
    select_server "$1"
    unset "servers[$1]"
}

# Measures one round; the server with many templates is running, and others are started beside it.
run_tail_round() {
    local neighbour_collection
    park tail
    data=$work/data-ceiling
    start ceiling
    measure_full_and_most ceiling
    stop
    data=$work/data-empty
    start galley
    measure tail/empty/full "$seconds" "${create[@]}" --connections 256
    stop
    unpark tail
    measure_full_and_most galley
    record_tail_memory
    measure tail/galley/key "$seconds" "${create_key[@]}" --connections 256
    neighbour_collection=/api/v1.0/15550002222/$neighbour_key/message_templates
    measure_beside_creates tail/neighbour/create "${create[@]}" --rate 500 \
        --path "$neighbour_collection" --token "$neighbour_token"
    measure_beside_creates tail/neighbour/list --mode get --rate 500 \
        --path "$neighbour_collection?limit=5" --token "$neighbour_token"
    measure_beside_creates tail/galley/read-during-creates --mode get --rate 1000 --ids "$work/ids-tail"
    record_tail_memory
    await_search "$tail_size"
    run_tail_reads
}

# Measures reads and renders, the ceiling and galley directly after each other: the speed of a shared machine
# changes within minutes.
run_tail_reads() {
    park tail
    data=$work/data-ceiling
    start ceiling
    echo 1000000000000000 >"$work/ceiling-ids"
    measure_read ceiling "$work/ceiling-ids"
    park ceiling
    unpark tail
    measure_read galley "$work/ids-spread"
    park tail
    unpark ceiling
    measure_render ceiling "$work/ceiling-ids"
    stop
    unpark tail
    measure_render galley "$work/ids-spread"
    measure_read galley "$work/ids-tail" -any
    measure_render galley "$work/ids-tail" -any
    record_tail_memory
}

# SERVER IDS [LABEL-SUFFIX]
measure_read() {
    measure "tail/$1/read${3:-}" "$read_seconds" --mode get --ids "$2" --connections 256
}

# SERVER IDS [LABEL-SUFFIX]
measure_render() {
    measure "tail/$1/render${3:-}" "$read_seconds" --mode post --ids "$2" --document "$values" \
        --path "$collection/{id}/render" --connections 256
}

run_tail() {
    local round
    data=$work/data-tail
    start galley
    load seeding "${create[@]}" --requests "$tail_size" --connections 256 --ids-out "$work/ids-tail" >/dev/null
    # 10,000 templates, spread evenly over all.
    awk -v step="$((tail_size > 10000 ? tail_size / 10000 : 1))" 'NR % step == 0 && ++n <= 10000' "$work/ids-tail" >"$work/ids-spread"
    await_search "$tail_size"
    create_neighbour
    for ((round = 1; round <= rounds; round++)); do
        echo "tail, round $round of $rounds, $tail_size templates"
        run_tail_round
    done
    stop
    data=$work/data
}
