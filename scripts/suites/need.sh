# To be sourced: what a script needs from the system, and how it gets it.

# Takes pairs of a command and the Debian package that has it. Installs what is missing where that
# is allowed; otherwise says exactly what it is.
need() {
    local missing=()
    local pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
    done
    ((${#missing[@]} == 0)) && return
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        install_quietly "${missing[@]}"
        return
    fi
    echo "${0#"$PWD/"} needs these Debian packages: ${missing[*]}" >&2
    echo "Install them (or their like), or run the tests that need none of them: cargo test --workspace" >&2
    exit 1
}

# Debian starts the services that it installs. Nobody has asked for them here, and on a machine
# that decides such things itself (policy-rc.d) its decision stands.
install_quietly() (
    policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"
)
