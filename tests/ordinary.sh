# Part of ./test, which sources it: runs a test program as a user without rights, even if the repository lies where others cannot go.

# A user ID without rights and, if possible, without a line in /etc/passwd.
ordinary_uid=61234

# Runs a test program as that user, in the directory of its package: as_ordinary PACKAGE_DIR PROGRAM ARGUMENT...
# If others cannot enter the repository (it lies below a directory such as /root, or was cloned with umask 077), the program runs in a
# mount namespace of its own, in which they can.
as_ordinary() {
    local place code=0
    place=$(TMPDIR=/tmp mktemp -d) && chmod 755 "$place" && mkdir "$place/home" "$place/mounts" &&
        chown "$ordinary_uid:$ordinary_uid" "$place/home" || return
    if is_open_to_others "$PWD" "$2"; then
        drop_rights "$place/home" "$@" || code=$?
    else
        export -f drop_rights is_open_to_others open_to_others
        export ordinary_uid
        unshare --mount --propagation private "$BASH" -c '
            set -e; repository=$1 place=$2; shift 2
            open_to_others "$repository" "$2" "$place/mounts"
            cd "$repository"; drop_rights "$place/home" "$@"' - "$PWD" "$place" "$@" || code=$?
    fi
    if [ -s "$place/home/not-run" ]; then
        echo "error: these tests of tests/ordinary need root:" >&2
        cat "$place/home/not-run" >&2
        code=1
    fi
    rm -rf "$place"
    return "$code"
}

# Whether that user can read the repository and run a program in it.
is_open_to_others() {
    setpriv --reuid="$ordinary_uid" --regid="$ordinary_uid" --clear-groups \
        sh -c 'cd "$0" && test -r Cargo.toml && test -r crates/cli/tests/runs/main.rs && test -x "$1"' "$1" "$2" 2>/dev/null
}

# In a mount namespace of its own: makes a repository readable. An empty directory covers the closed one above it. If the repository
# is closed itself, an overlay shows it with other modes, and the files stay as they are.
open_to_others() {
    local repository=$1 program=$2 work=$3 above= closed= part
    mount -t tmpfs -o mode=755 tmpfs "$work"
    mkdir "$work/repository" "$work/upper" "$work/scratch"
    mount --bind "$repository" "$work/repository"
    while read -r -d / part; do
        above=$above${part:+/$part}
        [ -n "$above" ] || continue
        if ! setpriv --reuid="$ordinary_uid" --regid="$ordinary_uid" --clear-groups test -x "$above"; then closed=$above; break; fi
    done <<<"${repository%/*}/"
    if [ -n "$closed" ]; then
        mount -t tmpfs -o mode=755 tmpfs "$closed"
        (umask 022; mkdir -p "$repository")
        mount --bind "$work/repository" "$repository"
    fi
    is_open_to_others "$repository" "$program" && return
    mount -t overlay -o "lowerdir=$work/repository,upperdir=$work/upper,workdir=$work/scratch,metacopy=on" overlay "$repository"
    cd "$repository"
    find . -path ./target -prune -o -path ./.git -prune -o ! -type l -exec chmod a+rX {} +
    chmod a+rX target target/debug target/debug/deps target/debug/pinfold* "$program"
    if [ -d target/before ]; then chmod -R a+rX target/before; fi
    is_open_to_others "$repository" "$program"
}

# Gives up all rights and the environment, and runs the program: drop_rights HOME PACKAGE_DIR PROGRAM ARGUMENT...
drop_rights() {
    local home=$1 package=$2 program=$3 repository=$PWD; shift 3
    (cd "$package" && exec setpriv --reuid="$ordinary_uid" --regid="$ordinary_uid" --clear-groups env --default-signal -i \
        HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        INSTA_UPDATE=no INSTA_FORCE_PASS=0 INSTA_WORKSPACE_ROOT="$repository" \
        PINFOLD_TEST_LIMIT="${PINFOLD_TEST_LIMIT:-600}" PINFOLD_TEST_NOT_RUN="$home/not-run" \
        "$program" "$@")
}
