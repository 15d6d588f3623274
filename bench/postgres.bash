# The part `postgres` of scripts/bench, which reads this file: galley on a PostgreSQL that has this
# machine to itself and the load. All functions and settings of scripts/bench are there.

# The database under test.
database=

# Where galley keeps its templates: a new file, or the database under test, which is made first.
store_address() {
    if [[ $store == sqlite ]]; then
        echo "sqlite:$data/galley.db"
    else
        echo "${GALLEY_TEST_POSTGRES/\/postgres/\/$database}"
    fi
}

in_database() { psql -qAt "${GALLEY_TEST_POSTGRES/\/postgres/\/$1}" -c "$2"; }

new_database() {
    store=postgres
    database=bench_$(random_hex)
    in_database postgres "CREATE DATABASE $database" >/dev/null
}

drop_database() {
    if [[ $store == postgres && -n $database ]]; then
        [[ $keep == yes ]] || in_database postgres "DROP DATABASE IF EXISTS $database WITH (FORCE)"
        database=
    fi
}

run_postgres() {
    ! wants ceiling || run_ceiling_again
    new_database
    start galley
    probe galley
    measure postgres/create/256 "$seconds" "${create[@]}" --connections 256
    resident postgres
    stop
    new_database
    start galley
    load seeding "${create[@]}" --requests 10000 --connections 256 --ids-out "$work/ids" >/dev/null
    await_search 10000
    run_reads postgres
    stop
    new_database
    start galley
    measure postgres/create-key/256 "$seconds" "${create_key[@]}" --connections 256
    stop
    run_two_instances
    store=sqlite
}

# The speed of a machine that others use as well changes within a minute: so creates
# are compared with a ceiling that was measured right before them.
run_ceiling_again() {
    start ceiling
    measure ceiling-again/create/256 "$seconds" "${create[@]}" --connections 256
    stop
}

# Two instances on one database, each with half of the connections.
run_two_instances() {
    local first first_port line
    new_database
    start galley
    first=$server first_port=$port
    start galley
    line=$(
        port=$first_port load half --seconds "$seconds" --warmup "$(part_of "$seconds" 10)" \
            "${create[@]}" --connections 128 &
        load half --seconds "$seconds" --warmup "$(part_of "$seconds" 10)" \
            "${create[@]}" --connections 128
        wait
    )
    together postgres-2/create/256 <<<"$line" >>"$results"
    tail -n 1 "$results" | shown
    kill "$first" && wait "$first" || true
    stop
}

# The result lines of runs at the same time as one: LABEL.
together() {
    awk -v label="$1" '
        function of(name) { match($0, "\"" name "\":[0-9.]+"); return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) }
        { rate += of("rate"); p50 += of("p50_us"); requests += of("requests"); cores += of("load_cores")
          if (of("p99_us") > p99) p99 = of("p99_us") }
        END { printf "{\"label\":\"%s\",\"rate\":%s,\"p50_us\":%d,\"p99_us\":%d,\"requests\":%d,\"statuses\":{\"201\":%d},\"unexpected\":0,\"errors\":0,\"load_cores\":%s}\n", label, rate, p50 / NR, p99, requests, requests, cores }'
}

# What many templates cost: they are created in tenths, and after each of them it is noted how fast it
# went and how much the database takes, without what it keeps for the search, which follows later.
run_fill() {
    local tenth=$((fill / 10)) number line
    new_database
    start galley
    for ((number = 1; number <= 10; number++)); do
        line=$(load fill "${create[@]}" --vary --requests "$tenth" --connections 256 --seconds 3600)
        in_database "$database" CHECKPOINT
        echo "  $((tenth * number)) templates: $(shown <<<"$line" | sed 's/.*fill: //'), $(store_kib) KiB," \
            "$(($(store_kib) * 1024 / (tenth * number))) bytes each"
    done
    echo "  the search has followed $(in_database "$database" 'SELECT sum(seq) FROM followed') and takes $(search_kib) KiB"
    stop
    store=sqlite
}
