# The part `growth` of scripts/bench, which reads this file: the same requests to servers with few and
# with many templates, which take turns. All functions and settings of scripts/bench are there.

# Takes the server with so many templates as the one under test.
turn_to() {
    server=${servers[$1]} port=${ports[$1]} data=$work/data-$1 database=${databases[$1]:-}
}

# Starts a server and fills it: SIZE. One template in fifty is paused.
grow() {
    local size=$1 begun seeded
    data=$work/data-$size
    [[ $growth_on == sqlite ]] || new_database
    start galley
    servers[$size]=$server ports[$size]=$port databases[$size]=$database
    begun=$EPOCHREALTIME
    load seeding "${create[@]}" --vary --requests "$size" --connections 256 \
        --ids-out "$work/ids-$size" --names-out "$work/names-$size" >/dev/null
    awk 'NR % 50 == 0' "$work/ids-$size" >"$work/paused"
    echo '{"decision":"pause"}' >"$work/pause.json"
    load pausing --mode post --document "$work/pause.json" --ids "$work/paused" \
        --path "$collection/{id}/review" --requests "$((size / 50))" --connections 64 >/dev/null
    seeded=$(since "$begun")
    sort -n "$work/ids-$size" | awk -v n="$size" 'NR > n / 4 && NR <= n * 3 / 4' >"$work/middle-$size"
    begun=$EPOCHREALTIME
    await_search "$size"
    holding[$size]="\"templates\":$size,\"seeded_s\":$seeded,\"followed_s\":$(
        since "$begun"
    ),\"seeded_kib\":$(own_kib)"
    echo "  $size templates: seeded in $seeded s, all of them found $(since "$begun") s later"
}

# Memory of the server under test in KiB, without files that it has mapped: their pages belong to the
# system, which takes them back when it needs them.
own_kib() { awk '/^RssAnon:/ { print $2 }' "/proc/$server/status"; }

# Seconds since a moment.
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# KiB of these files together; nothing for what is not there.
kib_of() { { stat -c %s "$@" 2>/dev/null || true; } | awk '{ sum += $1 } END { print int(sum / 1024) }'; }

store_kib() {
    if [[ $store == sqlite ]]; then
        kib_of "$data/galley.db"
    else
        echo $(($(in_database "$database" "SELECT pg_database_size('$database') / 1024") - $(search_kib)))
    fi
}

search_kib() {
    if [[ $store == sqlite ]]; then
        kib_of "$data/galley.db-search"
    else
        in_database "$database" "SELECT pg_total_relation_size('found_by') / 1024"
    fi
}

# Notes what the server with so many templates takes, and ends it: SIZE. The files are looked at
# afterwards, since a log is folded into its file at the end.
hold() {
    local logs memory
    turn_to "$1"
    logs=$(kib_of "$data"/*-wal)
    memory=$(own_kib)
    end_server
    echo "{${holding[$1]},\"crowd_kib\":$memory,\"logs_kib\":$logs,\"store_kib\":$(
        store_kib
    ),\"search_kib\":$(search_kib)}" >>"$results"
    unset "servers[$1]"
    stop
}

# The same request at every size, one after the other: KIND, how many templates a page has to hold
# at least, QUERY, and nothing or the ids that go into it.
grown() {
    local kind=$1 least=$2 query=$3 ids=${4:-} size one
    for size in ${sizes//,/ }; do
        turn_to "$size"
        one=$query
        [[ -z $ids ]] || one=${query/\{id\}/$(head -n 1 "$work/$ids-$size")}
        (($(found "$one") >= least)) || fail "$size templates: fewer than $least at $one"
        measure "growth/$kind/$size" "$(part_of "$seconds" 8)" --mode get --connections 8 \
            --server "$server" --path "$collection$query" ${ids:+--ids "$work/$ids-$size"}
    done
}

# The words are those that bench/load/src/variety.rs makes.
run_lists() {
    grown page 25 ''
    grown far-page 25 '?after={id}' middle
    grown status 25 '?status=PAUSED'
    grown category 25 '?category=UTILITY'
    grown language 25 '?language=de_DE'
    grown name 1 '?name={id}' names
    grown two-filters 25 '?category=UTILITY&language=de_DE'
    grown search-every 25 '?q=collection'
    grown search-rare 1 '?q=quetzal'
    grown search-start 25 '?q=ka'
    grown search-two 25 '?q=luvares+pabofen'
    grown search-status 25 '?q=collection&status=PAUSED'
    grown read 1 '/{id}' ids
}

# Few and behind the lists, since they make the small size a larger one.
run_creates() {
    local size
    for size in ${sizes//,/ }; do
        turn_to "$size"
        measure "growth/create/$size" 60 "${create[@]}" --vary --connections 8 --requests 1000 \
            --server "$server"
    done
}

# Many at once, to see what that does to the memory; last, since a server may keep it.
run_crowd() {
    local size
    for size in ${sizes//,/ }; do
        turn_to "$size"
        holding[$size]+=",\"runs_kib\":$(own_kib)"
        measure "growth/crowd/$size" "$(part_of "$seconds" 2)" --mode get --connections 256 \
            --server "$server" --path "$collection?after={id}" --ids "$work/middle-$size"
    done
}

run_growth() {
    local size round
    declare -gA holding=()
    for size in ${sizes//,/ }; do
        grow "$size"
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
        hold "$size"
    done
}
