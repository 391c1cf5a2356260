#!/usr/bin/env bash
# Do the Debian packages build, install and run on a clean system? As root; needs the network once.
# check-packages.sh [DIR]: DIR is where the packages and the clean system are made and left, so that
# a second run is short; without it both go away at the end.
#
# Where debootstrap cannot make a system the packages are unpacked, and run with the libraries here.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
dir=${1:-}
if [ -z "$dir" ]; then
    dir=$(mktemp -d)
    trap 'cleanup; rm -rf "$dir"' EXIT
else
    mkdir -p "$dir"
    trap 'cleanup' EXIT
fi
dir=$(realpath "$dir")
build=$dir/build
clean=$dir/clean # as debootstrap makes it
root=$dir/root   # with our packages
pids=()

fail() { echo "check-packages: $*" >&2; exit 1; }

cleanup() {
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    ! mountpoint -q "$root/proc" || umount "$root/proc"
    pids=()
}

# ---- build -----------------------------------------------------------------------------------

make_packages() {
    cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
        -DBUILD_TESTING=OFF -G Ninja >"$dir/log" 2>&1 &&
        nice cmake --build "$build" >>"$dir/log" 2>&1 || fail "$(tail -30 "$dir/log")"
    rm -rf "$dir/debs"
    (cd "$build" && cpack -G DEB -B "$dir/debs") >>"$dir/log" 2>&1 || fail "$(tail -30 "$dir/log")"
}

# ---- what is in them -------------------------------------------------------------------------

field() { dpkg-deb -f "$(ls "$dir/debs/$1"_*.deb)" "$2"; }

holds() { # PACKAGE PATH...
    local list
    list=$(dpkg-deb -c "$(ls "$dir/debs/$1"_*.deb)" | awk '{ print $6 }')
    for path in "${@:2}"; do
        grep -qxF "./$path" <<<"$list" || fail "$1 lacks $path"
    done
}

check_contents() {
    local multiarch
    multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
    holds libpliant0 "usr/lib/$multiarch/libpliant.so.0"
    holds libpliant-dev usr/include/pliant/pliant.h "usr/lib/$multiarch/libpliant.a" \
        "usr/lib/$multiarch/libpliant.so" "usr/lib/$multiarch/pkgconfig/pliant.pc"
    holds pliant usr/bin/pliantd usr/bin/pliant-agent usr/bin/pliantctl usr/bin/pliant-sim \
        usr/share/man/man1/pliantctl.1.gz usr/share/man/man8/pliantd.8.gz \
        usr/share/bash-completion/completions/pliantctl \
        usr/lib/systemd/system/pliantd.service usr/lib/systemd/system/pliant-agent.service
    [ ! -d python/pliant ] ||
        holds python3-pliant usr/lib/python3/dist-packages/pliant/__init__.py
    field pliant Depends | grep -q libczmq4 || fail "pliant: depends on $(field pliant Depends)"
    field libpliant-dev Depends | grep -q '^libpliant0 (= ' || fail "libpliant-dev: any libpliant0"
    for deb in "$dir"/debs/*.deb; do
        holds "$(dpkg-deb -f "$deb" Package)" \
            "usr/share/doc/$(dpkg-deb -f "$deb" Package)/copyright"
    done
    ! command -v lintian >/dev/null || lintian --fail-on error --suppress-tags \
        bad-distribution-in-changes-file,no-changelog "$dir"/debs/*.deb
}

check_units() {
    local units=$dir/units
    command -v systemd-analyze >/dev/null || return 0
    rm -rf "$units"
    mkdir "$units"
    for unit in pliantd pliant-agent; do # as if the programs were installed
        sed "s|^ExecStart=/usr/bin|ExecStart=$build|" "$build/$unit.service" \
            >"$units/$unit.service"
    done
    systemd-analyze verify --man=no "$units"/*.service || fail "units"
}

# ---- a clean system --------------------------------------------------------------------------

make_root() {
    rm -rf "$root"
    if [ ! -e "$clean/etc/debian_version" ]; then
        rm -rf "$clean"
        nice debootstrap --variant=minbase bookworm "$clean" >>"$dir/log" 2>&1 || return 1
    fi
    cp -a "$clean" "$root"
    mount -t proc proc "$root/proc"
}

enter=(chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
    LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
inside() { "${enter[@]}" "$@"; }

install_inside() {
    mkdir "$root/debs"
    cp "$dir"/debs/*.deb "$root/debs"
    inside apt-get update -q >>"$dir/log" 2>&1
    inside sh -c 'apt-get install -q -y --no-install-recommends /debs/*.deb' >>"$dir/log" 2>&1 ||
        fail "$(tail -30 "$dir/log")"
    inside getent passwd pliant >/dev/null || fail "there is no user pliant"
}

remove_inside() {
    inside sh -c 'dpkg --purge pliant python3-pliant libpliant-dev libpliant0' \
        >>"$dir/log" 2>&1 || fail "$(tail -30 "$dir/log")"
    [ ! -e "$root/usr/bin/pliantd" ] && [ ! -e "$root/var/lib/pliant" ] || fail "purged, not gone"
}

# Without a system: what the packages hold, with the libraries here.
unpack() {
    mkdir -p "$root"
    for deb in "$dir"/debs/*.deb; do
        dpkg -x "$deb" "$root"
    done
    enter=(env PATH="$root/usr/bin:$PATH" PYTHONPATH="$root/usr/lib/python3/dist-packages"
        LD_LIBRARY_PATH="$(dirname "$(find "$root" -name libpliant.so.0)")")
}

# ---- running ---------------------------------------------------------------------------------

# A job from beginning to end: the daemon, an agent, a task, its output.
run_service() {
    local state work job=$root/tmp/job.yaml
    mkdir -p "$root/tmp"
    state=/tmp/check-packages-$$
    work=$state.work
    cat >"$job" <<'END'
name: greeting
vertices:
  - id: hello
    parallelism: 1
    command: [/bin/sh, -c, "echo it works"]
END
    # not by inside(): the process itself, not a shell around it, is to be ended
    "${enter[@]}" pliantd --state-dir $state --agents ipc://$state.agents --clients ipc://$state.clients \
        --events ipc://$state.events 2>"$dir/pliantd.log" &
    pids+=($!)
    for _ in $(seq 100); do
        ! inside pliantctl --state-dir $state --timeout 2s ping 2>/dev/null || break
        sleep 0.1
    done
    "${enter[@]}" pliant-agent --slots 1 --connect ipc://$state.agents --work-dir $work \
        2>"$dir/agent.log" &
    pids+=($!)
    inside pliantctl --state-dir $state submit --wait "${job_path:-/tmp/job.yaml}" ||
        fail "$(tail -5 "$dir"/pliantd.log "$dir"/agent.log)"
    inside pliantctl --state-dir $state shutdown
    wait "${pids[0]}" || fail "$(tail -5 "$dir/pliantd.log")"
    kill "${pids[1]}" && wait "${pids[1]}" || fail "$(tail -5 "$dir/agent.log")"
    pids=()
    inside sh -c "rm -rf $state*"
}

check_programs() {
    local program
    for program in pliantd pliant-agent pliantctl pliant-sim pliant-worker; do
        inside $program --help >/dev/null || fail "$program --help"
    done
    [ ! -d python/pliant ] || inside python3 -c 'import pliant' || fail "import pliant"
}

echo "- the packages are built"
make_packages
echo "- they hold what they should"
check_contents
check_units
if make_root; then
    echo "- they install on a clean Debian"
    install_inside
    echo "- they run there"
    check_programs
    run_service
    echo "- they go away again"
    remove_inside
else
    echo "- no clean system here (debootstrap failed): they are unpacked, and run"
    unpack
    check_programs
    job_path=$root/tmp/job.yaml run_service
fi
echo "check-packages: passed"
