"""Trains on a cluster that has the training operator: what deploy/keelson.py is made of.

errors           what can go wrong, for the command and for its users as a module
kubectl          the one way to the cluster: runs kubectl, names its errors
settings         a job as the user describes it (image, servers, workers, claims, ...), and its rules
options          what users write -> values of settings ("CLAIM:/path", "KEY=VALUE")
manifest         settings -> ConfigMap, TFJob and Service
pod_template     the pod of each role
replica_pods     a job's pods, whichever generation of the operator labelled them
events           what the cluster reports about a job and its pods
job_creation     brings the objects to the cluster, whole or not at all
job_watch        looks at a job over times when the cluster does not answer
condition_wait   waits for conditions
training_client  TrainingClient: create, get, wait, logs, scale, delete, in the words of the training SDK
resubmission     creates jobs again that have lost pods
log_follower     a replica's log from its first pod to the end of the job
dashboard_forward
                 the evaluator's page on a port of this machine, over its restarts
status_view      tables for people
image_build      docker, podman or buildah on deploy/docker/Dockerfile
local_run        the same job on this machine, by deploy/tfjob_local.py
command_line     the flags
submit_settings  the flags of submit -> settings
submit           keelson.py submit
commands         what every other sub-command does; main

Uses tfjob_api to check a job before the cluster sees it; knows nothing of tfjob_local.
"""
