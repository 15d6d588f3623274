# Sourced by the checks: installs their tools and reads the documents.
#
# DIR is the first argument of each check; tools and generated code go below it.
# SUITE_ADDRESS is the running service. SUITE_V1 and SUITE_GRAPH are files to use instead of
# $SUITE_ADDRESS/openapi.json and $SUITE_ADDRESS/openapi-graph.json.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
check=$(basename "$0")

fail() {
    echo "$check: $*" >&2
    exit 1
}

dir=${1:-}
[[ -n $dir ]] || fail "usage: $check DIR"
mkdir -p "$dir"
dir=$(realpath "$dir")
export NO_PROXY=127.0.0.1 PYTHONDONTWRITEBYTECODE=1

# Installs the Python tools; reinstalls them when their list changes.
need_python() {
    command -v python3 >/dev/null || fail "python3 is missing (Debian: apt-get install python3 python3-venv)"
    venv=$dir/python
    if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
        echo "$check: installing Python packages into $venv"
        rm -rf "$venv"
        python3 -m venv "$venv" || fail "python3 cannot create a venv (Debian: apt-get install python3-venv)"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" ||
            fail "the packages listed in requirements.txt could not be installed from PyPI"
        cp "$here/requirements.txt" "$venv/installed.txt"
    fi
    PATH=$venv/bin:$PATH # openapi-python-client runs ruff
}

# Installs the Node packages of a directory of the checks: NAME. They contain Node 22 itself, whose
# installation needs its script.
need_node() {
    command -v npm >/dev/null || fail "npm is missing (Debian: apt-get install npm)"
    modules=$dir/$1
    if ! cmp -s "$here/$1/package-lock.json" "$modules/installed.json"; then
        echo "$check: installing Node packages into $modules"
        rm -rf "$modules"
        mkdir -p "$modules"
        cp "$here/$1/package.json" "$here/$1/package-lock.json" "$modules"
        npm ci --prefix "$modules" --no-audit --no-fund --loglevel=error >/dev/null ||
            fail "the packages listed in $1/package-lock.json could not be installed from npm"
        cp "$here/$1/package-lock.json" "$modules/installed.json"
    fi
    PATH=$modules/node_modules/node/bin:$modules/node_modules/.bin:$PATH
    [[ $(node --version) == v22.* ]] || fail "Node 22 was not installed, but $(node --version)"
}

# Copies the documents to $dir/v1.json and $dir/graph.json.
need_documents() {
    if [[ -n ${SUITE_V1:-} ]]; then
        cp "$SUITE_V1" "$dir/v1.json"
        cp "$SUITE_GRAPH" "$dir/graph.json"
    else
        curl -sSf -o "$dir/v1.json" "$SUITE_ADDRESS/openapi.json"
        curl -sSf -o "$dir/graph.json" "$SUITE_ADDRESS/openapi-graph.json"
    fi
}
