#!/bin/bash
# Runs one container of a pod in the network and mount namespaces that its caller made, and ends as it does.
# usage: container.sh ROOT MOUNTS USER:GROUP DIRECTORY PROGRAM [ARGUMENT...]
# ROOT: an empty folder. MOUNTS: a file with lines of SOURCE, TARGET and ro or rw, separated by tabs.
# The machine's /usr stands for the image's.
set -euo pipefail
root=$1
mounts=$2
user=$3
directory=$4
shift 4
readonly PATH_OF_THE_CONTAINER=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin

mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir -p "$root"/{usr,proc,dev,etc,tmp}
chmod 1777 "$root/tmp"
for name in bin sbin lib lib64; do
  ln -s "usr/$name" "$root/$name"
done
mount --bind -o ro /usr "$root/usr"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
cp /etc/passwd /etc/group /etc/ld.so.cache "$root/etc"
echo 'hosts: files' > "$root/etc/nsswitch.conf"
while IFS=$'\t' read -r source target mode; do
  if [[ -d $source ]]; then
    mkdir -p "$root$target"
  else
    mkdir -p "$(dirname "$root$target")"
    : > "$root$target"
  fi
  mount --bind -o "$mode" "$source" "$root$target"
done < "$mounts"
mkdir -p "$root$directory"
mount -o remount,ro "$root"
exec chroot --userspec="$user" --groups= "$root" \
  /usr/bin/env --chdir="$directory" PATH="$PATH_OF_THE_CONTAINER" "$@"
