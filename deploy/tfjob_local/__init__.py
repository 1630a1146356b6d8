"""The local launcher: a TFJob, PyTorchJob or TrainJob as processes of this machine, under an emulated operator and
kubelet.

The command:
command_line     from the command line to what it asks for, errors to one line
flags            the flags, with their help
local_plan       the manifest and the flags, checked against each other and this machine
addresses        a port or a 127.x.y.z for every replica, a port for every page
gpus             which GPUs there are
dry_run          what would run
run_job          the objects that run the job, put together
launcher         the loop around the operator and the kubelet, from the first process to the last
signals          signals as events

What the job is made of:
pods             the pods, as operator and kubelet share them; exit codes in words
job_operator     what the launcher asks of either controller
trainjob_operator  Trainer with JobSet and Job
tfjob_operator   the training operator; its parts:
operator_rules   how faithful it is, what the end of a pod means, a job's limits
operator_pods    the job's pods, counted and handled
operator_conditions  what they mean for the job as a whole
kubelet          pods as processes (a package of its own)

What the user sees:
console          lines, colours, the status line that is redrawn in place
live_output      events, conditions, log lines and progress while the job runs
dashboard_links  where the evaluators' pages are, once they answer
log_follower     which lines of the replicas' logs are shown
progress         the line about the training
summary          the end
run_directory    logs, volumes and state of one run
own_files        directories and files made where links may stand

From a second terminal:
control          the launcher's end of its socket
job_requests     what may be asked of a running job
control_client   the other end of the socket
remote_commands  the commands status, scale, kill, ...
job_view         the state of the job as plain data, for the socket and for status.yaml
status_view      that data as a table, YAML or JSON
"""
