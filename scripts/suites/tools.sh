# Sourced by other scripts: cargo subcommands in exactly the versions that the scripts are written for.
# CARGO is the cargo to build with.

readonly cargo=${CARGO:-cargo}

# Installs a subcommand unless this version is installed: NAME VERSION.
need_tool() {
    local name=$1 version=$2
    [[ " $("$cargo" "${name#cargo-}" --version 2>/dev/null)" == *[\ v]"$version" ]] && return
    echo "${0#"$PWD/"}: installing $name $version"
    "$cargo" install --quiet --locked --version "$version" "$name"
}
