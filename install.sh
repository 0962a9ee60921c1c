#!/bin/sh
# Installs a release of Atoll, if its checksum is right. Needs only what every Linux system has, and no root.
set -eu
# Services run as users of their own.
umask 022

usage() {
    cat <<'TEXT'
usage: install.sh --base-url URL [OPTION]...
       install.sh --from DIR [OPTION]...

Verifies the archive of a release with its checksum, and installs it: the
programs proxy-server, proxy-agent, atoll and kubectl-atoll, their man pages and
completions, the systemd units, and the configurations to copy. If the checksum
is wrong, the command installs nothing and exits with 1.

  --base-url URL  the release: URL/SHA256SUMS lists the archives, which have the
                  same URL. https:// or file://, and http:// only with --sha256
  --from DIR      the release in a directory, for machines without a network
  --prefix DIR    where to install: DIR/bin, DIR/lib/systemd/system, DIR/share.
                  Default: /usr/local
  --version V     the version, if the release has several
  --arch ARCH     x86_64 or aarch64. Default: that of this machine
  --sha256 SUM    the checksum that the archive must have, from a source that
                  you trust. SHA256SUMS of a URL protects only from errors
                  during the download: whoever can replace the archive can
                  replace SHA256SUMS, too
  --help          print this and exit

The command replaces files of an earlier version, does not restart services, and
never writes to /etc. To install without root, choose a prefix that you own:

  sh install.sh --from . --prefix "$HOME/.local"
  sudo sh install.sh --base-url https://downloads.example.com/atoll/v0.1.0

Exits with 0 on success, with 1 on failure, and with 64 if the options are
invalid. Requires tar and gzip; sha256sum, shasum or openssl; and for a URL,
curl or wget.
TEXT
}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}
invalid() {
    echo "install.sh: $*; see install.sh --help" >&2
    exit 64
}

# === options ===

base_url='' from='' prefix=/usr/local version='' arch=$(uname -m) pinned=''
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --*=*)
            option=${1%%=*} value=${1#*=}
            shift
            set -- "$option" "$value" "$@"
            continue
            ;;
        --base-url | --from | --prefix | --version | --arch | --sha256)
            if [ $# -lt 2 ] || [ -z "$2" ]; then invalid "$1 requires a value"; fi
            case $1 in
                --base-url) base_url=${2%/} ;;
                --from) from=$2 ;;
                --prefix) prefix=$2 ;;
                --version) version=${2#v} ;;
                --arch) arch=$2 ;;
                --sha256) pinned=$2 ;;
            esac
            shift 2
            ;;
        *) invalid "unknown argument: $1" ;;
    esac
done
case ${base_url:+url}${from:+from} in
    url | from) ;;
    '') invalid 'set --base-url or --from' ;;
    *) invalid '--base-url and --from exclude each other' ;;
esac
case $base_url in
    '' | https://* | file://*) ;;
    http://*) [ -n "$pinned" ] || invalid 'http:// protects nothing: use https://, or set --sha256' ;;
    *) invalid "unknown kind of URL: $base_url" ;;
esac
case $arch in
    x86_64 | aarch64) ;;
    amd64) arch=x86_64 ;;
    arm64) arch=aarch64 ;;
    *) invalid "there are no programs for the architecture $arch" ;;
esac
case $pinned in
    *[!0-9a-f]*) invalid "$pinned is not a SHA-256 checksum" ;;
    '') ;;
    *) [ ${#pinned} -eq 64 ] || invalid "$pinned is not a SHA-256 checksum" ;;
esac

# === the archive and its checksum ===

work=$(mktemp -d "${TMPDIR:-/tmp}/atoll-install-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Gets the file $1 of the release.
fetch() {
    if [ -n "$from" ]; then
        cp "$from/$1" "$work/$1" || fail "cannot read $from/$1"
    elif command -v curl >/dev/null; then
        # A redirection to http:// would undo the choice of https://.
        curl -fsSL --proto-redir '=https' -o "$work/$1" "$base_url/$1" || fail "cannot download $base_url/$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "$base_url/$1" || fail "cannot download $base_url/$1"
    else
        fail 'neither curl nor wget is installed'
    fi
}

sha256() {
    if command -v sha256sum >/dev/null; then
        sha256sum <"$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null; then
        shasum -a 256 <"$1" | cut -d ' ' -f 1
    elif command -v openssl >/dev/null; then
        openssl dgst -sha256 -r <"$1" | cut -d ' ' -f 1
    else
        fail 'neither sha256sum nor shasum nor openssl is installed'
    fi
}

fetch SHA256SUMS
# Lines of sha256sum: the checksum, a space, a space or an asterisk, the name. A name with a slash never matches.
found=$(awk -v arch="$arch" -v version="$version" '
    {
        sum = $1; name = $0; sub(/^[^ ]+ [ *]/, "", name)
        if (name !~ "^atoll-[0-9A-Za-z.~-]+-linux-" arch "\\.tar\\.gz$") next
        if (version != "" && name != "atoll-" version "-linux-" arch ".tar.gz") next
        print sum, name
    }' "$work/SHA256SUMS")
case $found in
    '') fail "SHA256SUMS has no archive of ${version:-any version} for $arch" ;;
    *'
'*) fail "SHA256SUMS has several archives for $arch: set --version" ;;
esac
expected=${found%% *} archive=${found#* }

fetch "$archive"
actual=$(sha256 "$work/$archive")
for sum in "$expected" ${pinned:+"$pinned"}; do
    [ "$actual" = "$sum" ] || fail "the checksum of $archive is wrong, so nothing is installed
  expected $sum
  actual   $actual"
done

# === install ===

tree=$work/${archive%.tar.gz}
tar -C "$work" -xzof "$work/$archive" || fail "cannot unpack $archive"
[ -d "$tree/bin" ] || fail "$archive does not contain ${archive%.tar.gz}/bin"
mkdir -p "$tree/share/doc/atoll"
mv "$tree/LICENSE" "$tree/share/doc/atoll/LICENSE"

(cd "$tree" && find bin lib share -type d) >"$work/folders"
(cd "$tree" && find bin lib share ! -type d) >"$work/files"
while read -r folder; do
    mkdir -p "$prefix/$folder" || fail "cannot create $prefix/$folder"
done <"$work/folders"
while read -r file; do
    # A running program cannot be overwritten. After a rename, it continues with the old file.
    new=$prefix/${file%/*}/.${file##*/}.new
    rm -f "$new"
    cp -P "$tree/$file" "$new" || fail "cannot write to $prefix/${file%/*}"
    mv -f "$new" "$prefix/$file" || fail "cannot replace $prefix/$file"
done <"$work/files"

echo "installed ${archive%.tar.gz}: $(wc -l <"$work/files" | tr -d ' ') files in $prefix"
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not in PATH" ;;
esac
