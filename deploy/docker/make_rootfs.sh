#!/bin/bash
# Collects, in the build stage of the Dockerfile, all files of an image: Keelson's programs and configs, the
# shared libraries that they load, busybox as the shell, and a record of the packages these come from.
# usage: deploy/docker/make_rootfs.sh cpu|cuda BIN_DIR FOLDER
set -euo pipefail

variant=$1
bin_dir=$2
root=$3
programs=(ps_server worker chief evaluator keelson_ckpt keelson_ctl keelson_data keelson_predict)
multiarch=$(gcc -print-multiarch)
busybox=$(command -v busybox)
originals=()  # what was copied from the distribution

make_folders() {
  local name
  mkdir -p "$root"/{dev,etc,proc,sys,var/log,usr/bin,usr/lib64,usr/share/doc,data,opt/keelson/bin} \
    "$root/usr/lib/$multiarch" "$root/var/lib/dpkg/status.d"
  for name in bin lib lib64; do
    ln -s "usr/$name" "$root/$name"
  done
  ln -s usr/bin "$root/sbin"
  # A volume that is mounted on an empty folder takes its mode: any user of the container can write.
  mkdir -m 1777 "$root/tmp" "$root/model"
}

# add_file MODE FILE TARGET
add_file() {
  install -m "$1" "$(realpath "$2")" "$root/$3"
  originals+=("$(realpath "$2")")
}

# add_library NAME PATH: all into one folder, which the loader searches without a cache.
add_library() {
  local target=usr/lib/$multiarch/$1
  if [[ ! -e $root/$target ]]; then
    add_file 755 "$2" "$target"
  fi
}

# add_libraries_of FILE
add_libraries_of() {
  local name path
  if ldd "$1" | grep 'not found' >&2; then
    echo "make_rootfs: $1 needs libraries that are not here" >&2
    exit 1
  fi
  while read -r name path; do
    add_library "$name" "$path"
  done < <(ldd "$1" | awk '$2 == "=>" { print $1, $3 }')
}

add_loader() {
  local loader
  loader=$(ldd "$bin_dir/chief" | awk '$1 ~ /^\/.*\/ld-/ { print $1 }')
  # $loader is "/lib64/…" or "/lib/…".
  add_file 755 "$loader" "usr$loader"
}

add_programs() {
  local program
  for program in "${programs[@]}"; do
    install -m 755 -s "$bin_dir/$program" "$root/opt/keelson/bin/$program"
    add_libraries_of "$bin_dir/$program"
  done
  cp -r configs "$root/opt/keelson/configs"
}

# Loaded at run time: `ldd` does not show it. It is beside cuBLAS, or where the loader finds it.
add_nccl() {
  local path=$cuda_libraries/libnccl.so.2
  if [[ ! -e $path ]]; then
    path=$(ldconfig -p | awk '$1 == "libnccl.so.2" && !seen++ { print $NF }')
  fi
  if [[ -z $path ]]; then
    echo "make_rootfs: note: no libnccl.so.2: several GPUs of a worker are summed by copies between them"
    return
  fi
  add_library libnccl.so.2 "$path"
  add_libraries_of "$path"
}

# The licences of what deploy/install_cuda.sh has installed.
add_cuda_records() {
  local record
  for record in "$cuda_libraries"/../nvidia_{cublas,nccl}*.dist-info; do
    if [[ -d $record ]]; then
      cp -r "$record" "$root/usr/share/doc/"
    fi
  done
}

add_shell() {
  local applet
  add_file 755 "$busybox" usr/bin/busybox
  for applet in $("$busybox" --list); do
    if [[ $applet != busybox ]]; then
      ln -s busybox "$root/usr/bin/$applet"
    fi
  done
}

add_system_files() {
  add_file 644 /etc/os-release etc/os-release
  # By this file NVIDIA's container runtime decides where it mounts the driver's libraries.
  add_file 644 /etc/debian_version etc/debian_version
  echo "/usr/lib/$multiarch" > "$root/etc/ld.so.conf"
  printf '%s\n' 'root:x:0:0:root:/:/bin/sh' 'keelson:x:65532:65532:Keelson:/tmp:/bin/sh' > "$root/etc/passwd"
  printf '%s\n' 'root:x:0:' 'keelson:x:65532:' > "$root/etc/group"
  echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
}

# record_packages: where scanners look for them, and the licences.
record_packages() {
  local package
  # A package may know a file by its name before /lib became /usr/lib.
  for package in $({ dpkg-query -S "${originals[@]}" "${originals[@]#/usr}" 2> /dev/null || true; } |
    sed -n 's/^\([a-z0-9][a-z0-9.+-]*\)\(:[a-z0-9]*\)\?: .*/\1/p' | sort -u); do
    dpkg-query -s "$package" > "$root/var/lib/dpkg/status.d/$package"
    install -D -m 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
  done
}

make_folders
add_programs
add_loader
if [[ $variant == cuda ]]; then
  cuda_libraries=$(ldd "$bin_dir/worker" | awk '$1 ~ /^libcublasLt/ { sub("/[^/]*$", "", $3); print $3 }')
  add_nccl
  add_cuda_records
fi
add_shell
add_system_files
record_packages
du -sh "$root"
