"""The local launcher: what the TFJob operator does with pods, done with processes.

job           the TFJob as data
manifest      a TFJob v1 file, checked by the operator's admission rules -> TFJob
fields        typed access to YAML values, errors with their path
signals       signals as events
console       lines and the redrawn status line
addresses     a free local port for every replica
tf_config     the TF_CONFIG string of a replica, byte for byte as the operator writes it
volumes       container paths -> local directories
command       replica -> program, arguments and environment
replica       one replica's processes, attempt after attempt, and its restart policy
supervisor    starts all replicas, restarts them, decides success or failure, ends all
progress      the line that says how training is going
summary       what is printed at the end
command_line  the flags, and the objects put together
"""
