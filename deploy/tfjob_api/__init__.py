"""The jobs of the training operator and of Kubeflow Trainer: what a manifest means, without running anything.

job_kind          what each kind of job has of its own: a table
model             the job as data
operator_version  what differs between the operator's generations
naming            replicas, pods, services, labels, host names
operator_pod      what the operator adds to a pod
tf_config         TF_CONFIG, byte for byte
pytorch_pod       a PyTorchJob's variables, byte for byte, and its init container
trainjob_pod      a TrainJob's variables
job_set           a TrainJob's rules for ends of pods
status            conditions and replica statuses, with the operator's rules
trainjob_status   those of a TrainJob
conditions        the conditions of a job that somebody else wrote

From files to a job:
reader            manifest files -> job, the objects beside it, warnings; puts together all below
fields            typed access to YAML values, errors with their path
documents         files of YAML documents, lists taken apart
template          OpenShift's Template with its parameters
selection         which of the documents is the job
legacy            older API versions and shapes, brought to v1
admission         what is refused: by the operator's webhook, and what could never end well
pytorch_admission what is refused of PyTorchJobs alone
pytorch_spec      what a PyTorchJob has beside its replicas
trainjob_admission  what is refused of TrainJobs
trainjob_runtime  the runtime that a TrainJob names
job_set_spec      the JobSet in it
trainjob_reader   a TrainJob with its runtime
pod_template      a replica's pod template
containers        its containers
quantity          Kubernetes' quantities
schema            the field names that the resource definition knows
lint              what deserves a warning
pytorch_lint      what of a PyTorchJob does
trainjob_lint     what of a TrainJob does
objects           ConfigMaps, Secrets and claims beside the job
names             names and paths that become names of files

What the commands share:
job_document      the replica types of a job that the cluster has
yaml_text         documents -> YAML to read
text_table        columns of text
command_flags     flags that all of them have

Used by the local launcher (tfjob_local), by keelson.py, and by the tests of the manifests. Imports
neither of them.
"""
