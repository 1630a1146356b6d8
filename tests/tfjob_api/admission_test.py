"""Tests refusals: the webhook's rules 1-7 with its words, the old controller's, and jobs without an end."""

from support import ManifestTest, manifest, replica

SPECS = "spec.tfReplicaSpecs"
# As the webhook and as the controller name them.
CONTAINERS = f"{SPECS}[Worker].template.spec.containers"
OLD_CONTAINERS = f"{SPECS}.Worker.template.spec.containers"
LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NO_CONTAINERS = (
    manifest("    Worker:\n"),
    manifest("    Worker: {}\n"),
    manifest("    Worker: {template: }\n"),
    manifest("    Worker: {template: {spec: {containers: []}}}\n"),
)
NO_IMAGE = manifest(replica("Worker")).replace("image: keelson", "image: ''")
NO_TENSORFLOW = manifest(replica("Worker")).replace("name: tensorflow", "name: trainer")
TWO_CHIEFS = manifest(replica("Chief"), replica("Master"))


def without_specs():
    for spec in ("spec: {}", "spec:", "spec: {tfReplicaSpecs: }", "spec: {tfReplicaSpecs: {}}"):
        yield f"apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {{name: j}}\n{spec}\n"


class WebhookTest(ManifestTest):
    """Operators from 1.8 on, rule by rule."""

    def test_1_name_is_a_label(self):
        for name in ("Mnist", "1mnist", "my_job", "mnist-", "my.job", "{{name}}"):
            self.assert_refused(
                manifest(replica("Worker"), name=f"'{name}'"),
                f'metadata.name: Invalid value: "{name}": should match: {LABEL_RULE}',
            )

    def test_1_name_is_short(self):
        too_long = "must be no more than 63 characters"
        for name, rules in (("a" * 64, too_long), ("A" * 64, f"{too_long},{LABEL_RULE}")):
            self.assert_refused(
                manifest(replica("Worker"), name=name),
                f'metadata.name: Invalid value: "{name}": should match: {rules}',
            )

    def test_2_replica_specs(self):
        for text in without_specs():
            self.assert_refused(text, f"{SPECS}: Required value: must be required")

    def test_3_containers(self):
        for text in NO_CONTAINERS:
            self.assert_refused(text, f"{CONTAINERS}: Required value: must be specified")

    def test_4_image(self):
        self.assert_refused(NO_IMAGE, f"{CONTAINERS}[0].image: Required value: must be required")
        self.assert_refused(
            manifest(replica("Worker")) + "            - name: sidecar\n",
            f"{CONTAINERS}[1].image: Required value: must be required",
        )

    def test_5_container_named_tensorflow(self):
        self.assert_refused(
            NO_TENSORFLOW,
            f"{CONTAINERS}: Required value: must have at least one container with name tensorflow",
        )

    def test_6_one_chief(self):
        self.assert_refused(TWO_CHIEFS, f"{SPECS}: Forbidden: must not have more than 1 Chief or Master role")
        self.assert_refused(
            TWO_CHIEFS.replace("Chief:", "chief:"),
            f"{SPECS}: Forbidden: must not have more than 1 Chief or Master role",
        )

    def test_7_managed_by(self):
        where = "spec.runPolicy.managedBy"
        text = manifest(replica("Worker"), spec="runPolicy: {managedBy: NAME}")
        self.assert_refused(
            text.replace("NAME", "me"),
            f'{where}: Unsupported value: "me": supported values: "kubeflow.org/training-operator", '
            '"kueue.x-k8s.io/multikueue"',
        )
        self.assert_refused(
            text.replace("NAME", "kueue.x-k8s.io/multikueue"),
            f'{where}: "kueue.x-k8s.io/multikueue": another controller runs this job, the operator leaves it '
            "alone",
        )
        self.read(text.replace("NAME", "kubeflow.org/training-operator"))
        self.read(text.replace("NAME", "me"), version="1.8")


class ControllerTest(ManifestTest):
    """Operators before 1.8, which had no webhook."""

    def refuse(self, text, expected, version="1.7"):
        self.assert_refused(text, expected, version=version)

    def test_texts(self):
        invalid = "TFJobSpec is not valid"
        for text in without_specs():
            self.refuse(text, f"{SPECS}: {invalid}")
        self.refuse(NO_CONTAINERS[0], f"{OLD_CONTAINERS}: {invalid}: containers definition expected in Worker")
        self.refuse(
            NO_IMAGE, f"{OLD_CONTAINERS}[0].image: {invalid}: Image is undefined in the container of Worker"
        )
        self.refuse(
            NO_TENSORFLOW, f"{OLD_CONTAINERS}: {invalid}: There is no container named tensorflow in Worker"
        )
        self.refuse(TWO_CHIEFS, f"{SPECS}: {invalid}: more than 1 chief/master found")

    def test_name(self):
        text = manifest(replica("Worker"), name="Mnist")
        self.refuse(text, f"metadata.name: TFJob name is invalid: [{LABEL_RULE}]")
        # They took it, and their Services were refused.
        self.refuse(text, f'metadata.name: Invalid value: "Mnist": should match: {LABEL_RULE}', "1.5")

    def test_evaluators(self):
        text = manifest(replica("Worker"), replica("Evaluator", 2))
        for version in ("0.4", "1.0.1"):
            self.refuse(text, f"{SPECS}: TFJobSpec is not valid: more than 1 evaluator found", version)
        for version in ("0.3", "1.1"):
            self.read(text, version=version)


class NoEndTest(ManifestTest):
    """Jobs that the operator accepts, and that never end, or never train."""

    def test_nothing_that_ends_the_job(self):
        for types in (("Evaluator",), ("PS",), ("PS", "Evaluator")):
            self.assert_refused(
                manifest(*(replica(t) for t in types)),
                f"{SPECS}: expected a Chief or a Worker, found {', '.join(types)} alone: nothing would end "
                "the job",
            )

    def test_no_chief_and_no_worker_left(self):
        what = (
            f"{SPECS}.Worker.replicas: expected at least 1 where there is no Chief, found 0: the operator "
            "would report success at once"
        )
        self.assert_refused(manifest(replica("Worker", 0), replica("PS")), what)
        self.assert_refused(manifest(replica("Worker", 3)), what, replicas={"Worker": 0})
        self.read(manifest(replica("Chief"), replica("Worker", 0)))

    def test_more_or_less_than_one_chief(self):
        for chief in ("Chief", "Master"):
            for count in (0, 2):
                self.assert_refused(
                    manifest(replica(chief, count), replica("Worker")),
                    f"{SPECS}.{chief}.replicas: expected 1 {chief}, found {count}",
                )

    def test_unknown_replica_type(self):
        self.assert_refused(
            manifest(replica("Worker"), replica("Scheduler")),
            f"{SPECS}.Scheduler: unknown replica type, expected one of Chief, Evaluator, Master, PS, Worker",
        )

    def test_pod_names(self):
        name = "a" * 54
        self.read(manifest(replica("Worker", 10), name=name))
        self.assert_refused(
            manifest(replica("Worker", 11), name=name),
            f'metadata.name: the pod and its Service are called "{name}-worker-10": must be no more than 63 '
            "characters, found 64",
        )

    def test_namespace(self):
        for namespace in ("Team", "a_b", "-a", "a" * 64):
            text = manifest(replica("Worker")).replace("name: job", f"name: job\n  namespace: {namespace}", 1)
            found = f'"{namespace}"' if len(namespace) < 58 else f'"{"a" * 55}..."'
            self.assert_refused(
                text,
                f"metadata.namespace: expected lower case letters, digits and '-', at most 63, found {found}",
            )
