"""The TFJob resource: what a manifest means, without running anything.

model             the TFJob as data
operator_version  what differs between the operator's generations
naming            replicas, pods, services, labels, host names
tf_config         TF_CONFIG, byte for byte
status            conditions and replica statuses, with the operator's rules
conditions        the conditions of a TFJob that somebody else wrote

From files to a TFJob:
reader            manifest files -> TFJob, the objects beside it, warnings; puts together all below
fields            typed access to YAML values, errors with their path
documents         files of YAML documents, lists taken apart
template          OpenShift's Template with its parameters
selection         which of the documents is the TFJob
legacy            older API versions and shapes, brought to v1
admission         what is refused: by the operator's webhook, and what could never end well
pod_template      a replica's pod template
containers        its containers
quantity          Kubernetes' quantities
schema            the field names that the resource definition knows
lint              what deserves a warning
objects           ConfigMaps, Secrets and claims beside the job
names             names and paths that become names of files

What the commands share:
yaml_text         documents -> YAML to read
text_table        columns of text
command_flags     flags that all of them have

Used by the local launcher (tfjob_local), by keelson.py, and by the tests of the manifests. Imports
neither of them.
"""
