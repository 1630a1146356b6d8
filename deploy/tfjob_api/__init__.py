"""The jobs of the training operator: what a manifest means, without running anything.

job_kind          what TFJob and PyTorchJob have of their own: a table
model             the job as data
operator_version  what differs between the operator's generations
naming            replicas, pods, services, labels, host names
operator_pod      what the operator adds to a pod
tf_config         TF_CONFIG, byte for byte
pytorch_pod       a PyTorchJob's variables, byte for byte, and its init container
status            conditions and replica statuses, with the operator's rules
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
pod_template      a replica's pod template
containers        its containers
quantity          Kubernetes' quantities
schema            the field names that the resource definition knows
lint              what deserves a warning
pytorch_lint      what of a PyTorchJob does
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
