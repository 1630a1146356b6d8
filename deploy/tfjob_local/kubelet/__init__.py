"""The emulated kubelet: pods as processes of this machine.

What a pod shall be (no processes yet):
plan              the processes and directories of one pod
environment       env and envFrom, with the objects that they refer to
volumes           container paths -> local directories
service_names     "mnist-ps-0.default.svc:2222" -> the local address
command_words     a container's command, taken apart into program and arguments
program_flags     the flags of Keelson's programs, from --help=json
flag_translation  arguments of classic trainers -> flags of Keelson's programs
scripts           Python scripts as workers: where they, their package and their volumes are
user_scripts      Python scripts of a job's own that this machine has
programs          an image and its command -> a program of this machine
permissions       what the user lets a manifest do on this machine
gpu_dealer        GPU limits -> CUDA_VISIBLE_DEVICES
local_ports       ports that replicas of one machine would share
planner           all of them put together: a replica -> its plan

What becomes of it:
process           one container's process group and its log file
backoff           how long a crashed container waits
pod_run           one pod: its containers, one after another, restarts in place, its end
history           one replica through all its pods: logs, restarts, exit codes
kubelet           all pods of the job
keeper            no process survives the launcher
keeper_process    the keeper's own program
"""
