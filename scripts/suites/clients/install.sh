# Sourced by the suites with published clients of WhatsApp's API: finds the binary to test and installs
# the clients. `suite` is its name.
#
# Sets `here` (this directory), `root`, `clients` (where they are installed) and `galley`.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
clients=$root/.suites/whatsapp-clients
galley=${GALLEY_BIN:-$root/target/debug/galley}
unset GALLEY_BIN # not a setting of the service

fail() {
    echo "$suite: $*" >&2
    exit 1
}

# Installs the clients when their lists have changed.
install_clients() {
    command -v python3 >/dev/null || fail "python3 is missing (Debian: apt-get install python3 python3-venv)"
    command -v npm >/dev/null || fail "npm is missing (Debian: apt-get install npm)"
    if ! cmp -s "$here/requirements.txt" "$clients/python/installed.txt"; then
        echo "$suite: installing Python clients into .suites/whatsapp-clients"
        rm -rf "$clients/python"
        python3 -m venv "$clients/python" || fail "python3 cannot create a venv (Debian: apt-get install python3-venv)"
        "$clients/python/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt" ||
            fail "the packages listed in scripts/suites/clients/requirements.txt could not be installed from PyPI"
        cp "$here/requirements.txt" "$clients/python/installed.txt"
    fi
    if ! cmp -s "$here/package-lock.json" "$clients/node/installed.json"; then
        echo "$suite: installing Node clients into .suites/whatsapp-clients"
        rm -rf "$clients/node"
        mkdir -p "$clients/node"
        cp "$here/package.json" "$here/package-lock.json" "$clients/node"
        npm ci --prefix "$clients/node" --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null ||
            fail "the packages listed in scripts/suites/clients/package-lock.json could not be installed from npm"
        cp "$here/package-lock.json" "$clients/node/installed.json"
    fi
    # Node resolves packages relative to the importing file.
    cp "$here"/*.mjs "$clients/node"
}

# Checks that there is a binary to test, and makes its path absolute.
need_galley() {
    [[ -x $galley ]] || fail "$galley does not exist: build it with cargo build -p galley, or set GALLEY_BIN"
    galley=$(realpath "$galley")
}
