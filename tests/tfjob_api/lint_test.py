"""Warnings: one line each, with the field's path, and none where nothing is wrong."""

from support import ManifestTest, manifest, replica

SPECS = "spec.tfReplicaSpecs"
PS_LEAK = (
    "spec.runPolicy.cleanPodPolicy: None{0} leaves a PS that does not end by itself running after the job; "
    "Running is usual"
)


class PolicyTest(ManifestTest):
    def test_nothing_wrong(self):
        self.assert_warnings(manifest(replica("Chief"), replica("Worker", 2), replica("Evaluator")))

    def test_clean_pod_policy_none_with_a_ps(self):
        text = manifest(replica("Worker"), replica("PS"))
        self.assert_warnings(text, PS_LEAK.format(" (the default)"))
        self.assert_warnings(text, version="1.5")
        for policy, expected in (("None", [PS_LEAK.format("")]), ("Running", []), ("All", [])):
            text = manifest(replica("Worker"), replica("PS"), spec=f"runPolicy: {{cleanPodPolicy: {policy}}}")
            self.assert_warnings(text, *expected)

    def test_restart_policy_always(self):
        for replica_type in ("Chief", "PS", "Evaluator", "Worker"):
            types = {
                "Chief": "Never",
                "PS": "Never",
                "Worker": "Never",
                "Evaluator": "Never",
                replica_type: "Always",
            }
            self.assert_warnings(
                manifest(
                    *(replica(t, policy=policy) for t, policy in types.items()),
                    spec="runPolicy: {cleanPodPolicy: All}",
                ),
                f"{SPECS}.{replica_type}.restartPolicy: Always restarts after exit code 0 too: this "
                f"{replica_type} never ends",
            )

    def test_restart_policy_of_the_pod_template(self):
        where = f"{SPECS}.Worker.template.spec.restartPolicy: the operator overwrites OnFailure with"
        text = manifest(replica("Worker", pod="restartPolicy: OnFailure"))
        self.assert_warnings(text, f"{where} Never")
        self.assert_warnings(
            text.replace("      restartPolicy: Never\n", "", 1),
            f"{where} Never; set {SPECS}.Worker.restartPolicy",
        )
        self.assert_warnings(manifest(replica("Worker", policy="OnFailure", pod="restartPolicy: OnFailure")))

    def test_backoff_limit_does_not_count_exit_code_restarts(self):
        replicas = (
            replica("Chief", policy="ExitCode"),
            replica("Worker", policy="ExitCode"),
            replica("Evaluator"),
        )
        self.assert_warnings(
            manifest(*replicas, spec="runPolicy: {backoffLimit: 3}"),
            "spec.runPolicy.backoffLimit: the operator does not count the restarts of Chief, Worker "
            "(restartPolicy ExitCode)",
        )
        self.assert_warnings(manifest(*replicas, spec="runPolicy: {backoffLimit: 0}"))
        self.assert_warnings(
            manifest(replica("Worker", policy="OnFailure"), spec="runPolicy: {backoffLimit: 3}")
        )

    def test_deadline(self):
        self.assert_warnings(
            manifest(replica("Worker"), spec="runPolicy: {activeDeadlineSeconds: 60}"),
            "spec.runPolicy.activeDeadlineSeconds: the operator notices the deadline only when a pod changes",
        )
        self.assert_warnings(
            manifest(replica("Worker"), spec="runPolicy: {activeDeadlineSeconds: 5}"), version="1.2"
        )

    def test_success_policy_beside_a_chief(self):
        self.assert_warnings(
            manifest(replica("Master"), replica("Worker"), spec="successPolicy: AllWorkers"),
            "spec.successPolicy: no effect, the Master decides",
        )
        self.assert_warnings(manifest(replica("Worker"), spec="successPolicy: AllWorkers"))

    def test_evaluators(self):
        """They share the snapshots: each is scored once. TensorFlow's programs know one alone."""
        worker = replica("Worker", container="command: [worker]")
        evaluators = replica("Evaluator", 2, container="command: [/bin/evaluator]")
        self.assert_warnings(manifest(worker, evaluators))
        expected = (
            f"{SPECS}.Evaluator.replicas: TensorFlow refuses a TF_CONFIG with more than one evaluator; Keelson's "
            "programs take it"
        )
        other = worker.replace("[worker]", "[python, train.py]")
        self.assert_warnings(manifest(other, evaluators), expected)
        self.assert_warnings(manifest(replica("Worker"), replica("Evaluator", 2)), expected)
        self.assert_warnings(manifest(replica("Worker"), replica("Evaluator", 1)))
        self.assertNotIn(expected, self.read(manifest(other, evaluators), version="1.1").warnings)

    def test_no_replicas(self):
        warning = "replicas: 0: the operator makes a pod nevertheless, and the job fails; leave {0} out"
        text = manifest(replica("Chief"), replica("Worker", 0), replica("Evaluator", 0))
        self.assert_warnings(text, *(f"{SPECS}.{t}.{warning.format(t)}" for t in ("Worker", "Evaluator")))
        # Numbers of the command line are for this machine.
        self.assert_warnings(manifest(replica("Chief"), replica("Worker")), replicas={"Worker": 0})


class PortTest(ManifestTest):
    """A replica's Service gets all ports of the container: names and numbers must be unique."""

    def assert_ports(self, ports, problem):
        where = f"{SPECS}.Worker.template.spec.containers: ports"
        expected = [f"{where}: {problem}: the cluster refuses the replica's Service"] if problem else []
        self.assert_warnings(manifest(replica("Worker", container=f"ports: {ports}")), *expected)

    def test_good_ones(self):
        self.assert_ports("[]", "")
        self.assert_ports("[{name: tfjob-port, containerPort: 2222}]", "")
        self.assert_ports(
            "[{name: tfjob-port, containerPort: 22223}, {name: metrics, containerPort: 9090}]", ""
        )
        self.assert_ports("[{name: metrics, containerPort: 9090}]", "")

    def test_without_name(self):
        problem = "a port without a name beside tfjob-port"
        self.assert_ports("[{containerPort: 2222}]", problem)
        self.assert_ports("[{name: tfjob-port, containerPort: 2222}, {containerPort: 9090}]", problem)

    def test_services_with_one_port(self):
        text = manifest(replica("Worker", container="ports: [{containerPort: 9090}]"))
        self.assert_warnings(text, version="1.1")
        self.assertEqual(len(self.read(text, version="1.2").warnings), 1)

    def test_one_number_twice(self):
        problem = "one port under two names, tfjob-port among them or added by the operator"
        self.assert_ports("[{name: grpc, containerPort: 2222}]", problem)
        self.assert_ports(
            "[{name: tfjob-port, containerPort: 2222}, {name: grpc, containerPort: 2222}]", problem
        )


class RefusedPodTest(ManifestTest):
    """The API server takes the job, and none of its pods: without a warning nobody would see why."""

    POD = f"{SPECS}.Worker.template"
    CONTAINER = f"{POD}.spec.containers[0]"

    def assert_problem(self, text, where, problem):
        consequence = "the cluster refuses the pods, and the job gets no condition"
        self.assert_warnings(text, f"{where}: {problem}; {consequence}")

    def of_container(self, fields):
        return manifest(replica("Worker", container=fields))

    def test_good_ones(self):
        for fields in (
            "imagePullPolicy: Never",
            "resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: '0.5', nvidia.com/gpu: 1}}",
            "ports: [{name: exactly-15-char, containerPort: 9}]",
        ):
            self.assert_warnings(self.of_container(fields))
        labels = "metadata: {labels: {example.com/a.b_c: A-1, empty: ''}}"
        self.assert_warnings(manifest(replica("Worker", template=labels)))

    def test_requests_above_limits(self):
        self.assert_problem(
            self.of_container("resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 1500m, memory: 2Gi}}"),
            f"{self.CONTAINER}.resources.requests",
            'Invalid value: "2": must be less than or equal to cpu limit of 1500m',
        )

    def test_pull_policy(self):
        self.assert_problem(
            self.of_container("imagePullPolicy: Sometimes"),
            f"{self.CONTAINER}.imagePullPolicy",
            'Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
        )

    def test_port_names(self):
        rule = "expected lower case letters, digits and single '-' between them, at least one letter, found"
        for name, problem in (
            ("sixteen-letters-", 'Invalid value: "sixteen-letters-": must be no more than 15 characters'),
            ("Metrics", f'{rule} "Metrics"'),
            ("'90'", f'{rule} "90"'),
        ):
            text = self.of_container(f"ports: [{{name: {name}, containerPort: 9}}]")
            self.assert_problem(text, f"{self.CONTAINER}.ports[0].name", problem)

    def test_one_port_name_twice(self):
        ports = "[{name: tfjob-port, containerPort: 2222}, {name: tfjob-port, containerPort: 9090}]"
        text = self.of_container(f"ports: {ports}")
        self.assert_problem(text, f"{self.CONTAINER}.ports[1].name", 'Duplicate value: "tfjob-port"')

    def test_labels(self):
        rule = "letters and digits, '-', '_' and '.' between them, at most 63 characters"
        text = manifest(replica("Worker", template="metadata: {labels: {team: a b}}"))
        self.assert_problem(text, f"{self.POD}.metadata.labels.team", f'expected {rule}, found "a b"')
        text = manifest(replica("Worker", template="metadata: {labels: {a/-b: c}}"))
        self.assert_problem(
            text, f"{self.POD}.metadata.labels", f'expected as the name of a label {rule}, found "a/-b"'
        )

    def test_labels_of_the_job(self):
        text = manifest(replica("Worker")).replace("metadata:", "metadata:\n  labels: {team: a b}", 1)
        rule = "letters and digits, '-', '_' and '.' between them, at most 63 characters"
        self.assert_warnings(
            text, f'metadata.labels.team: expected {rule}, found "a b"; the cluster refuses the job'
        )

    def test_init_containers(self):
        init = "initContainers: [{name: a, image: i, imagePullPolicy: Often}]"
        path = f"{self.POD}.spec.initContainers[0].imagePullPolicy"
        text = manifest(replica("Worker", pod=init))
        self.assertTrue([w for w in self.read(text).warnings if w.startswith(f"{path}: Unsupported value")])


class UnknownFieldTest(ManifestTest):
    """Fields that the API server prunes."""

    def assert_unknown(self, text, path, hint=""):
        self.assert_warnings(text, f"{path}: unknown field, the API server drops it{hint}")

    def test_every_level(self):
        worker = f"{SPECS}.Worker"
        pod = f"{worker}.template.spec"
        for text, path, hint in (
            (manifest(replica("Worker")) + "\nSpec: {}\n", "Spec", " (it knows spec)"),
            (manifest(replica("Worker"), spec="cleanPods: All"), "spec.cleanPods", ""),
            (manifest(replica("Worker"), spec="runPolicy: {ttl: 3}"), "spec.runPolicy.ttl", ""),
            (
                manifest(replica("Worker").replace("replicas:", "workers: 1\n      replicas:")),
                f"{worker}.workers",
                "",
            ),
            (manifest(replica("Worker", template="status: {}")), f"{worker}.template.status", ""),
            (
                manifest(replica("Worker", pod="nodeselector: {}")),
                f"{pod}.nodeselector",
                " (it knows nodeSelector)",
            ),
            (manifest(replica("Worker", container="envs: []")), f"{pod}.containers[0].envs", ""),
            (
                manifest(replica("Worker", container="env: [{name: A, val: b}]")),
                f"{pod}.containers[0].env[0].val",
                "",
            ),
            (
                manifest(replica("Worker", container="resources: {limit: {}}")),
                f"{pod}.containers[0].resources.limit",
                "",
            ),
            (
                manifest(
                    replica("Worker", container="ports: [{name: tfjob-port, containerPort: 1, port: 2}]")
                ),
                f"{pod}.containers[0].ports[0].port",
                "",
            ),
        ):
            with self.subTest(path):
                self.assert_unknown(text, path, hint)
