# The growth part of scripts/bench, which sources this file: sends the same requests alternately to
# servers with few and with many templates. Uses the functions and variables of scripts/bench.

# Makes the server with this number of templates the server under test: SIZE.
select_server() {
    server=${servers[$1]} port=${ports[$1]} data=$work/data-$1 database=${databases[$1]:-}
}

# Starts a server and creates templates: SIZE. Pauses one template in fifty.
start_and_seed() {
    local size=$1 started seeded
    data=$work/data-$size
    [[ $growth_on == sqlite ]] || create_database
    start galley
    servers[$size]=$server ports[$size]=$port databases[$size]=$database
    started=$EPOCHREALTIME
    load seeding "${create[@]}" --vary --requests "$size" --connections 256 \
        --ids-out "$work/ids-$size" --names-out "$work/names-$size" >/dev/null
    awk 'NR % 50 == 0' "$work/ids-$size" >"$work/paused"
    echo '{"decision":"pause"}' >"$work/pause.json"
    load pausing --mode post --document "$work/pause.json" --ids "$work/paused" \
        --path "$collection/{id}/review" --requests "$((size / 50))" --connections 64 >/dev/null
    seeded=$(seconds_since "$started")
    sort -n "$work/ids-$size" | awk -v n="$size" 'NR > n / 4 && NR <= n * 3 / 4' >"$work/middle-$size"
    started=$EPOCHREALTIME
    await_search "$size"
    footprint[$size]="\"templates\":$size,\"seeded_s\":$seeded,\"followed_s\":$(
        seconds_since "$started"
    ),\"seeded_kib\":$(anon_kib)"
    echo "  $size templates: seeded in $seeded s, search index caught up $(seconds_since "$started") s later"
}

# Prints the anonymous memory of the server under test in KiB. Mapped file pages do not count, because
# the system reclaims them when it needs memory.
anon_kib() { awk '/^RssAnon:/ { print $2 }' "/proc/$server/status"; }

# Prints the seconds since a timestamp: EPOCHREALTIME.
seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# Prints the total size of these files in KiB; missing files count as 0.
kib_of() { { stat -c %s "$@" 2>/dev/null || true; } | awk '{ sum += $1 } END { print int(sum / 1024) }'; }

store_kib() {
    if [[ $store == sqlite ]]; then
        kib_of "$data/galley.db"
    else
        echo $(($(run_sql "$database" "SELECT pg_database_size('$database') / 1024") - $(search_kib)))
    fi
}

search_kib() {
    if [[ $store == sqlite ]]; then
        kib_of "$data/galley.db-search"
    else
        run_sql "$database" "SELECT pg_total_relation_size('search_index') / 1024"
    fi
}

# Records memory and disk space of the server with this number of templates, and stops it: SIZE. File
# sizes are read after the stop, which checkpoints the logs.
record_footprint() {
    local logs memory
    select_server "$1"
    logs=$(kib_of "$data"/*-wal)
    memory=$(anon_kib)
    stop_server
    echo "{${footprint[$1]},\"crowd_kib\":$memory,\"logs_kib\":$logs,\"store_kib\":$(
        store_kib
    ),\"search_kib\":$(search_kib)}" >>"$results"
    unset "servers[$1]"
    stop
}

# Measures the same request at every size in turn: KIND, minimum number of templates on the page,
# QUERY, and optionally the name of the id file.
measure_sizes() {
    local kind=$1 min=$2 query=$3 ids=${4:-} size example
    for size in ${sizes//,/ }; do
        select_server "$size"
        example=$query
        [[ -z $ids ]] || example=${query/\{id\}/$(head -n 1 "$work/$ids-$size")}
        (($(count_found "$example") >= min)) || fail "$size templates: fewer than $min results for $example"
        measure "growth/$kind/$size" "$(divide "$seconds" 8)" --mode get --connections 8 \
            --server "$server" --path "$collection$query" ${ids:+--ids "$work/$ids-$size"}
    done
}

# The search terms match the words of bench/load/src/document_generator.rs.
run_lists() {
    measure_sizes page 25 ''
    measure_sizes far-page 25 '?after={id}' middle
    measure_sizes status 25 '?status=PAUSED'
    measure_sizes category 25 '?category=UTILITY'
    measure_sizes language 25 '?language=de_DE'
    measure_sizes name 1 '?name={id}' names
    measure_sizes two-filters 25 '?category=UTILITY&language=de_DE'
    measure_sizes search-every 25 '?q=collection'
    measure_sizes search-rare 1 '?q=quetzal'
    measure_sizes search-start 25 '?q=ka'
    measure_sizes search-two 25 '?q=luvares+pabofen'
    measure_sizes search-status 25 '?q=collection&status=PAUSED'
    measure_sizes read 1 '/{id}' ids
}

# Few creates, after the lists, because they enlarge the small size.
run_creates() {
    local size
    for size in ${sizes//,/ }; do
        select_server "$size"
        measure "growth/create/$size" 60 "${create[@]}" --vary --connections 8 --requests 1000 \
            --server "$server"
    done
}

# Many concurrent requests, to measure the memory afterwards; last, because a server may keep that memory.
run_crowd() {
    local size
    for size in ${sizes//,/ }; do
        select_server "$size"
        footprint[$size]+=",\"runs_kib\":$(anon_kib)"
        measure "growth/crowd/$size" "$(divide "$seconds" 2)" --mode get --connections 256 \
            --server "$server" --path "$collection?after={id}" --ids "$work/middle-$size"
    done
}

run_growth() {
    local size round
    declare -gA footprint=()
    for size in ${sizes//,/ }; do
        start_and_seed "$size"
    done
    for ((round = 1; round <= rounds; round++)); do
        echo "growth, round $round of $rounds"
        run_lists
    done
    for ((round = 1; round <= rounds; round++)); do
        run_creates
    done
    run_crowd
    for size in ${sizes//,/ }; do
        record_footprint "$size"
    done
}
