# Sourced by other scripts: checks for required commands and installs missing packages.

# Checks that commands exist: COMMAND:PACKAGE…, where PACKAGE is the Debian package of the command.
# Installs missing packages as root; otherwise prints their names and exits.
need() {
    local missing=()
    local pair
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
    done
    ((${#missing[@]} == 0)) && return
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        install_without_services "${missing[@]}"
        return
    fi
    echo "${0#"$PWD/"} needs these Debian packages: ${missing[*]}" >&2
    echo "Install them (or their equivalents), or run the tests that do not need them: cargo test --workspace" >&2
    exit 1
}

# Installs packages without starting their services, which Debian does by default. An existing
# policy-rc.d is respected.
install_without_services() (
    policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"
)
