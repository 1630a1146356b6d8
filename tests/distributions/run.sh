#!/bin/bash
# Tries README's commands, or a wheel of the Python package, on a fresh Debian, which debootstrap puts into a folder.
set -euo pipefail

usage() {
  cat << 'USAGE'
usage: tests/distributions/run.sh [--tests | --wheel=FILE] [--keep] bookworm|trixie
  Makes a root of Debian 12 (bookworm) or 13 (trixie) with git and nothing else, clones this repository's
  HEAD into it and runs deploy/run_local.sh there.
  --tests       then runs tests/run.sh as well
  --wheel=FILE  instead makes a root with python3-venv and nothing else, has pip install this wheel
                (deploy/make_wheel.py) without an index, and runs tests/distributions/wheel_job.py there
  --keep        leaves the root where it is and says where
Needs root, debootstrap and 6 GiB in $TMPDIR. Packages come from the mirrors of this machine's apt. No
process and no mount stays. exit code: 0 all ok; 1 something failed; 2 usage
USAGE
}

# fail CODE TEXT
fail() {
  echo "tests/distributions/run.sh: $2" >&2
  exit "$1"
}

release=
tests=no
wheel=
keep=no
for argument in "$@"; do
  case "$argument" in
    -h | --help) usage; exit 0 ;;
    --tests) tests=yes ;;
    --wheel=*) wheel=${argument#--wheel=} ;;
    --keep) keep=yes ;;
    bookworm | trixie)
      if [[ -n $release ]]; then
        fail 2 "expected one release, found $release and $argument"
      fi
      release=$argument ;;
    *) fail 2 "unknown argument: $argument: expected --tests, --wheel=FILE, --keep, bookworm or trixie" ;;
  esac
done
if [[ -z $release ]]; then
  usage >&2
  exit 2
fi
if [[ -n $wheel && $tests == yes ]]; then
  fail 2 "expected --tests or --wheel, found both"
fi
if [[ -n $wheel && ! -f $wheel ]]; then
  fail 2 "--wheel=$wheel: expected what deploy/make_wheel.py has made, found no file"
fi
if [[ $(id -u) -ne 0 ]]; then
  fail 1 "expected root, which chroot and mounts need"
fi
if ! command -v debootstrap > /dev/null; then
  fail 1 "debootstrap is missing: apt-get install debootstrap"
fi

# mirror PATTERN: the first of this machine's mirrors that has a Debian release whose name matches.
mirror() {
  apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' |
    awk -v pattern="$1" '$2 ~ pattern && !found { print $1; found = 1 }'
}

site=$(mirror '^[a-z]+$')
security=$(mirror '-security$')
if [[ -z $site ]]; then
  fail 1 "apt knows no mirror of Debian: apt-get update"
fi

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
root=$(mktemp -d -t "keelson-$release.XXXXXX")
chmod 755 "$root"
# What is being done, and the process that does it.
step=
running=

end() {
  # unshare takes no other signal while it waits for its child.
  if [[ -n $running ]] && kill -KILL "$running" 2> /dev/null; then
    wait "$running" 2> /dev/null || true
  fi
  if [[ -n $step ]]; then
    echo "tests/distributions/run.sh: $release: $step failed" >&2
  fi
  if [[ $keep == yes ]]; then
    echo "the root is in $root"
  else
    rm -rf --one-file-system "$root"
  fi
}
trap end EXIT
trap 'exit 1' HUP INT TERM

# isolated COMMAND...: with namespaces of its own for mounts and processes, which end with it.
isolated() {
  unshare --mount --mount-proc --pid --fork --kill-child "$@" &
  # In the background, so that a signal is heeded at once.
  running=$!
  wait "$running"
  running=
}

# in_root SCRIPT
in_root() {
  local environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin) name
  for name in TERM http_proxy https_proxy no_proxy NPM_CONFIG_REGISTRY; do
    if [[ -n ${!name:-} ]]; then
      environment+=("$name=${!name}")
    fi
  done
  isolated bash -euc '
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    mount -t tmpfs tmpfs "$0/dev/shm"
    exec chroot "$0" "$@"' "$root" env -i "${environment[@]}" bash -euc "$1"
}

# try NAME COMMAND...: ends the script when the command fails.
try() {
  local began=$SECONDS seconds
  step=$1
  printf '\n== %s: %s\n' "$release" "$step"
  "${@:2}"
  seconds=$((SECONDS - began))
  printf '== %s: %s: ok (%d:%02d)\n' "$release" "$step" $((seconds / 60)) $((seconds % 60))
  step=
}

# bootstrap PACKAGES: the smallest root with them.
bootstrap() {
  isolated debootstrap --variant=minbase --include="$1" "$release" "$root" "$site" > /dev/null
}

make_root() {
  bootstrap git,ca-certificates
  {
    echo "deb $site $release main"
    echo "deb $site $release-updates main"
    if [[ -n $security ]]; then
      echo "deb $security $release-security main"
    fi
  } > "$root/etc/apt/sources.list"
  join_network
}

# What this machine's network asks for: apt's proxies, names, certificates.
join_network() {
  apt-config dump | { grep -E '^Acquire::(http|https|Check-[A-Za-z-]+)(::| )' || true; } > \
    "$root/etc/apt/apt.conf.d/90machine"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  cp -R /usr/local/share/ca-certificates "$root/usr/local/share/"
  in_root 'update-ca-certificates > /dev/null'
}

clone() {
  git clone --quiet --bare "$repository" "$root/srv/keelson.git"
  in_root 'git clone --quiet /srv/keelson.git /root/keelson'
}

install_wheel() {
  cp "$wheel" "$repository/tests/distributions/wheel_job.py" "$root/srv/"
  in_root 'python3 -m venv /root/venv && /root/venv/bin/pip install --quiet --no-index /srv/*.whl'
}

if [[ -n $wheel ]]; then
  try "debootstrap" bootstrap python3-venv
  try "pip install" install_wheel
  try "a job of the wheel" in_root '/root/venv/bin/python /srv/wheel_job.py'
  exit
fi
try "debootstrap" make_root
try "git clone" clone
try "deploy/run_local.sh" in_root 'cd /root/keelson && deploy/run_local.sh'
if [[ $tests == yes ]]; then
  try "tests/run.sh" in_root 'cd /root/keelson && tests/run.sh'
fi
