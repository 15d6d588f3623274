# The postgres and fill parts of scripts/bench, which sources this file: galley with a PostgreSQL server
# on the same machine. Uses the functions and variables of scripts/bench.

# The database under test.
database=

# Prints the --store value for galley: a new file, or the database under test.
store_address() {
    if [[ $store == sqlite ]]; then
        echo "sqlite:$data/galley.db"
    else
        echo "${GALLEY_TEST_POSTGRES/\/postgres/\/$database}"
    fi
}

# Runs a statement and prints its result: DATABASE SQL.
run_sql() { psql -qAt "${GALLEY_TEST_POSTGRES/\/postgres/\/$1}" -c "$2"; }

create_database() {
    store=postgres
    database=bench_$(random_hex)
    run_sql postgres "CREATE DATABASE $database" >/dev/null
}

drop_database() {
    if [[ $store == postgres && -n $database ]]; then
        [[ $keep == yes ]] || run_sql postgres "DROP DATABASE IF EXISTS $database WITH (FORCE)"
        database=
    fi
}

run_postgres() {
    ! is_selected ceiling || run_second_ceiling
    create_database
    start galley
    probe galley
    measure postgres/create/256 "$seconds" "${create[@]}" --connections 256
    record_memory postgres
    stop
    create_database
    start galley
    load seeding "${create[@]}" --requests 10000 --connections 256 --ids-out "$work/ids" >/dev/null
    await_search 10000
    run_reads postgres
    stop
    create_database
    start galley
    measure postgres/create-key/256 "$seconds" "${create_key[@]}" --connections 256
    stop
    run_two_instances
    run_postgres_deliveries
    store=sqlite
}

# The speed of a shared machine changes within a minute, so creates on PostgreSQL are compared with a
# ceiling run directly before them.
run_second_ceiling() {
    start ceiling
    measure ceiling-again/create/256 "$seconds" "${create[@]}" --connections 256
    stop
}

# Measures two instances on one database, each with half of the connections.
run_two_instances() {
    local first first_port line
    create_database
    start galley
    first=$server first_port=$port
    start galley
    line=$(
        port=$first_port load half --seconds "$seconds" --warmup "$(divide "$seconds" 10)" \
            "${create[@]}" --connections 128 &
        load half --seconds "$seconds" --warmup "$(divide "$seconds" 10)" \
            "${create[@]}" --connections 128
        wait
    )
    merge_results postgres-2/create/256 <<<"$line" >>"$results"
    tail -n 1 "$results" | format_result
    kill "$first" && wait "$first" || true
    stop
}

# Merges the result lines of concurrent runs into one: LABEL.
merge_results() {
    awk -v label="$1" '
        function field(name) { match($0, "\"" name "\":[0-9.]+"); return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) }
        { rate += field("rate"); p50 += field("p50_us"); requests += field("requests"); cores += field("load_cores")
          if (field("p99_us") > p99) p99 = field("p99_us") }
        END { printf "{\"label\":\"%s\",\"rate\":%s,\"p50_us\":%d,\"p99_us\":%d,\"requests\":%d,\"statuses\":{\"201\":%d},\"unexpected\":0,\"errors\":0,\"load_cores\":%s}\n", label, rate, p50 / NR, p99, requests, requests, cores }'
}

# Creates many templates in ten steps, and reports the rate and the size of the database after each
# step, without the search index, which follows later.
run_fill() {
    local step_size=$((fill / 10)) step line
    create_database
    start galley
    for ((step = 1; step <= 10; step++)); do
        line=$(load fill "${create[@]}" --vary --requests "$step_size" --connections 256 --seconds 3600)
        run_sql "$database" CHECKPOINT
        echo "  $((step_size * step)) templates: $(format_result <<<"$line" | sed 's/.*fill: //'), $(store_kib) KiB," \
            "$(($(store_kib) * 1024 / (step_size * step))) bytes per template"
    done
    echo "  search index: $(run_sql "$database" 'SELECT sum(indexed) FROM search_progress') events indexed, $(search_kib) KiB"
    stop
    store=sqlite
}
