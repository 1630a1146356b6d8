"""The objects that submit makes: what each setting becomes, and that the reader has no word against them."""

import unittest

import yaml
from support import CONFIG, settings

from keelson_client.errors import InputError
from keelson_client.manifest import check_documents, find_job, render
from keelson_client.settings import Mount, Resources, Toleration
from tfjob_api.job_document import replica_specs
from tfjob_api.job_kind import PYTORCH_JOB
from tfjob_api.yaml_text import to_yaml


def specs(documents):
    return replica_specs(find_job(documents))


def of_kind(documents, kind):
    return [document for document in documents if document["kind"] == kind]


def pods(documents):
    return {kind: spec["template"]["spec"] for kind, spec in specs(documents).items()}


def containers(documents):
    return {kind: spec["containers"][0] for kind, spec in pods(documents).items()}


VARIANTS = {
    "whole": settings(),
    "alone": settings(ps=0, workers=0),
    "no chief": settings(chief=False),
    "no servers": settings(ps=0, gpus=1),
    "workers alone": settings(ps=0, chief=False),
    "no servers, no claim": settings(ps=0, model_claim=None),
    "pytorch": settings(kind=PYTORCH_JOB, ps=0),
    "pytorch alone": settings(kind=PYTORCH_JOB, ps=0, workers=0, model_claim=None),
    "no claim": settings(model_claim=None),
    "no config": settings(config=""),
    "static": settings(dynamic_workers=False, namespace="ml"),
    "no budget": settings(disruption_budget=False),
    "everything": settings(
        gpus=2,
        data_claim=Mount("digits", "/data"),
        secrets=(Mount("token", "/secrets/token"),),
        environment={"A": "1"},
        dashboard=True,
        auth_secret="mnist-token",
        training_steps=7,
        node_selector={"pool": "gpu"},
        tolerations=(Toleration("spot", "yes", "NoSchedule"), Toleration("any")),
        service_account="trainer",
        image_pull_secrets=("registry",),
        arguments=("--learning_rate=0.01",),
    ),
}


class EveryVariantTest(unittest.TestCase):
    """Properties of every manifest, whatever the settings."""

    def check(self, check):
        for name, variant in VARIANTS.items():
            with self.subTest(name):
                check(variant, render(variant))

    def test_reader_accepts_it_without_a_warning(self):
        def check(_, documents):
            warnings = check_documents(documents).warnings
            # The Service is for clusters only.
            self.assertEqual([w for w in warnings if not w.startswith("ignored locally: Service")], [])

        self.check(check)

    def test_yaml_says_the_same(self):
        def check(_, documents):
            text = to_yaml(documents)
            self.assertEqual(list(yaml.safe_load_all(text)), documents)
            self.assertNotIn("&id", text)

        self.check(check)

    def test_mounts_have_volumes_and_volumes_are_mounted(self):
        def check(_, documents):
            for pod in pods(documents).values():
                mounted = [mount["name"] for mount in pod["containers"][0]["volumeMounts"]]
                self.assertEqual(sorted(mounted), sorted(volume["name"] for volume in pod["volumes"]))

        self.check(check)

    def test_pods_may_run_where_root_is_forbidden(self):
        def check(_, documents):
            for pod in pods(documents).values():
                self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                security = pod["containers"][0]["securityContext"]
                self.assertFalse(security["allowPrivilegeEscalation"])
                self.assertTrue(security["readOnlyRootFilesystem"])
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]})

        self.check(check)

    def test_every_role_has_the_same_config_and_model(self):
        def check(variant, documents):
            for container in containers(documents).values():
                has_config = "--config=/etc/keelson/job.textproto" in container["args"]
                self.assertEqual(has_config, bool(variant.config))
                model_dir = "/model/mnist" if variant.model_claim else "/model"
                self.assertIn(f"--model_dir={model_dir}", container["args"])
                self.assertEqual(container["ports"][0], {"name": variant.kind.port_name, "containerPort": variant.kind.port})

        self.check(check)


class GoldenTest(unittest.TestCase):
    """A small job, whole."""

    maxDiff = None

    def test_chief_alone(self):
        documents = render(settings(ps=0, workers=0, namespace="ml"))
        config, account, policy, budget, job = documents
        labels = {"app.kubernetes.io/managed-by": "keelson"}
        self.assertEqual(
            config,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "mnist-config", "namespace": "ml", "labels": labels},
                "data": {"job.textproto": CONFIG},
            },
        )
        self.assertEqual(
            account,
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "mnist-chief", "namespace": "ml", "labels": labels},
                "automountServiceAccountToken": False,
            },
        )
        own_pods = {"matchLabels": {"training.kubeflow.org/job-name": "mnist"}}
        self.assertEqual(
            policy,
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "mnist", "namespace": "ml", "labels": labels},
                "spec": {
                    "podSelector": own_pods,
                    "policyTypes": ["Ingress"],
                    "ingress": [
                        {"from": [{"podSelector": own_pods}], "ports": [{"port": 2222}]},
                        {"from": [{"namespaceSelector": {}}], "ports": [{"port": 9090}]},
                    ],
                },
            },
        )
        self.assertEqual(
            budget,
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "mnist", "namespace": "ml", "labels": labels},
                "spec": {"minAvailable": 1, "selector": own_pods},
            },
        )
        template = job["spec"]["tfReplicaSpecs"]["Chief"].pop("template")
        self.assertEqual(
            job,
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "TFJob",
                "metadata": {"name": "mnist", "namespace": "ml", "labels": labels},
                "spec": {
                    "runPolicy": {"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 86400},
                    "tfReplicaSpecs": {"Chief": {"replicas": 1, "restartPolicy": "ExitCode"}},
                },
            },
        )
        self.assertEqual(
            template["metadata"]["annotations"],
            {
                "sidecar.istio.io/inject": "false",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9090",
            },
        )
        container = template["spec"]["containers"][0]
        self.assertEqual(container["name"], "tensorflow")
        self.assertEqual(container["image"], "keelson:1")
        self.assertEqual(container["command"], ["chief"])
        self.assertEqual(
            container["args"],
            ["--config=/etc/keelson/job.textproto", "--model_dir=/model/mnist", "--metrics_port=9090"],
        )
        self.assertEqual(
            template["spec"]["volumes"],
            [
                {"name": "config", "configMap": {"name": "mnist-config"}},
                {"name": "model", "persistentVolumeClaim": {"claimName": "models"}},
            ],
        )


class SettingTest(unittest.TestCase):
    """Each setting has its effect, and only on the roles that it concerns."""

    def test_programs_and_numbers(self):
        documents = render(settings())
        commands = {kind: container["command"] for kind, container in containers(documents).items()}
        self.assertEqual(
            commands,
            {"Chief": ["chief"], "PS": ["ps_server"], "Worker": ["worker"], "Evaluator": ["evaluator"]},
        )
        numbers = {kind: spec["replicas"] for kind, spec in specs(documents).items()}
        self.assertEqual(numbers, {"Chief": 1, "PS": 2, "Worker": 3, "Evaluator": 1})

    def test_restart_policies(self):
        def policies(**changes):
            return {kind: spec["restartPolicy"] for kind, spec in specs(render(settings(**changes))).items()}

        expected = {"Chief": "ExitCode", "PS": "ExitCode", "Worker": "ExitCode", "Evaluator": "OnFailure"}
        self.assertEqual(policies(), expected)
        self.assertEqual(set(policies(restart_policy="Never").values()), {"Never"})

    def test_run_policy(self):
        def policy(**changes):
            return find_job(render(settings(**changes)))["spec"]["runPolicy"]

        self.assertEqual(policy(ttl_seconds=None, clean_pod_policy="All"), {"cleanPodPolicy": "All"})
        limits = policy(deadline_seconds=60, backoff_limit=0)
        self.assertEqual((limits["activeDeadlineSeconds"], limits["backoffLimit"]), (60, 0))

    def test_gpus_are_the_workers(self):
        documents = render(settings(gpus=2))
        for kind, pod in pods(documents).items():
            works = kind == "Worker"
            container = pod["containers"][0]
            self.assertEqual(container["resources"]["limits"].get("nvidia.com/gpu"), 2 if works else None)
            self.assertEqual("tolerations" in pod, works)
            self.assertEqual("--device=cuda:0,1" in container["args"], works)

    def test_resources_of_one_role(self):
        documents = render(settings(resources={"ps": Resources("4", ""), "worker": Resources("3", "5Gi")}))
        found = {kind: c["resources"] for kind, c in containers(documents).items()}
        request, limit = {"ephemeral-storage": "64Mi"}, {"ephemeral-storage": "1Gi"}
        requests = {"cpu": "4", "memory": "512Mi", **request}
        self.assertEqual(found["PS"], {"requests": requests, "limits": {"memory": "512Mi", **limit}})
        both = {"cpu": "3", "memory": "5Gi"}
        self.assertEqual(found["Worker"], {"requests": {**both, **request}, "limits": {**both, **limit}})
        self.assertEqual(found["Chief"]["requests"], {"cpu": "250m", "memory": "512Mi", **request})

    def test_snapshots_in_the_pod_have_no_limit(self):
        def limited(**changes):
            found = containers(render(settings(model_claim=None, **changes)))
            return [kind for kind, c in found.items() if "ephemeral-storage" in c["resources"]["limits"]]

        self.assertEqual(limited(), ["PS", "Worker"])
        self.assertEqual(limited(chief=False), ["PS"])

    def test_there_is_time_for_a_last_snapshot(self):
        for pod in pods(render(settings())).values():
            self.assertGreater(pod["terminationGracePeriodSeconds"], 60)

    def test_without_a_claim_the_chief_writes_the_snapshots(self):
        def writers(**changes):
            found = containers(render(settings(model_claim=None, **changes)))
            return [kind for kind, c in found.items() if "--checkpoint_writer=chief" in c["args"]]

        self.assertEqual(writers(), ["Chief"])
        self.assertEqual(writers(chief=False), ["Worker"])
        self.assertEqual(writers(ps=0, workers=0), [])
        self.assertNotIn("Evaluator", specs(render(settings(model_claim=None))))

    def test_workers_are_dynamic_where_nothing_speaks_against_it(self):
        def is_dynamic(**changes):
            documents = render(settings(**changes))
            has_flags = any("_hosts=" in a for c in containers(documents).values() for a in c["args"])
            dynamic = find_job(documents)["spec"].get("enableDynamicWorker", False)
            self.assertEqual(dynamic, has_flags)
            return dynamic

        self.assertTrue(is_dynamic())
        self.assertTrue(is_dynamic(model_claim=None, workers=1))
        self.assertFalse(is_dynamic(chief=False))
        self.assertFalse(is_dynamic(ps=0, workers=0))
        self.assertFalse(is_dynamic(dynamic_workers=False))

    def test_hosts_of_ones_own_stand_alone(self):
        documents = render(settings(arguments=("--ps_hosts=a:1,b:1",)))
        self.assertNotIn("enableDynamicWorker", find_job(documents)["spec"])
        hosts = [a for a in containers(documents)["Chief"]["args"] if "_hosts" in a]
        self.assertEqual(hosts, ["--ps_hosts=a:1,b:1"])

    def test_no_pod_is_evicted_that_the_job_cannot_lose(self):
        def budget(**changes):
            (found,) = of_kind(render(settings(**changes)), "PodDisruptionBudget")
            spec = found["spec"]
            return spec["minAvailable"], spec["selector"].get("matchExpressions")

        others = [{"key": "training.kubeflow.org/replica-type", "operator": "NotIn", "values": ["worker"]}]
        self.assertEqual(budget(), (4, others))
        self.assertEqual(budget(evaluator=False), (3, others))
        self.assertEqual(budget(dynamic_workers=False), (7, None))
        self.assertEqual(budget(chief=False), (6, None))
        self.assertEqual(of_kind(render(settings(disruption_budget=False)), "PodDisruptionBudget"), [])

    def test_dynamic_roles_find_each_other_by_name(self):
        def hosts(**changes):
            documents = render(settings(**changes))
            self.assertIs(find_job(documents)["spec"]["enableDynamicWorker"], True)
            return {
                kind: [flag for flag in container["args"] if "_hosts=" in flag]
                for kind, container in containers(documents).items()
            }

        servers, chief = "--ps_hosts=mnist-ps-{0..1}:2222", "--chief_hosts=mnist-chief-0:2222"
        evaluator = "--evaluator_hosts=mnist-evaluator-0:2222"
        expected = {"Chief": [servers, chief, evaluator], "PS": [], "Worker": [], "Evaluator": [chief]}
        self.assertEqual(hosts(), expected)
        self.assertEqual(hosts(evaluator=False)["Chief"], [servers, chief])

    def test_accounts_are_the_roles_own_or_the_given_one(self):
        def accounts(**changes):
            documents = render(settings(**changes))
            used = [pod["serviceAccountName"] for pod in pods(documents).values()]
            self.assertTrue(all(p["automountServiceAccountToken"] is False for p in pods(documents).values()))
            return used, [account["metadata"]["name"] for account in of_kind(documents, "ServiceAccount")]

        own = ["mnist-chief", "mnist-ps", "mnist-worker", "mnist-evaluator"]
        self.assertEqual(accounts(), (own, own))
        self.assertEqual(accounts(service_account="trainer"), (["trainer"] * 4, []))
        self.assertEqual(accounts(ps=0, workers=0), (["mnist-chief"], ["mnist-chief"]))

    def test_workers_write_the_model_where_they_lead_or_have_histograms(self):
        def writers(**changes):
            mounts = {k: c["volumeMounts"] for k, c in containers(render(settings(**changes))).items()}
            writing = {"name": "model", "mountPath": "/model"}
            reading = {**writing, "readOnly": True}
            self.assertTrue(all((writing in m) != (reading in m) for m in mounts.values()))
            return [kind for kind, found in mounts.items() if writing in found]

        self.assertEqual(writers(), ["Chief", "PS", "Evaluator"])
        self.assertEqual(writers(chief=False), ["PS", "Worker", "Evaluator"])
        asking = "train { seed: 1 histogram_steps: 100 }\n"
        self.assertEqual(writers(config=asking), ["Chief", "PS", "Worker", "Evaluator"])
        for silent in ("train { histogram_steps: 0 }\n", "# histogram_steps: 5\n"):
            self.assertEqual(writers(config=silent), ["Chief", "PS", "Evaluator"], silent)

    def test_only_a_page_opens_its_port(self):
        def ports(**changes):
            (policy,) = of_kind(render(settings(**changes)), "NetworkPolicy")
            return {rule["ports"][0]["port"]: rule["from"] for rule in policy["spec"]["ingress"]}

        self.assertEqual(list(ports()), [2222, 9090])
        self.assertEqual(ports(dashboard=True)[6006], [{"podSelector": {}}])

    def test_dashboard(self):
        documents = render(settings(dashboard=True))
        service = documents[-1]
        self.assertEqual(service["metadata"]["name"], "mnist-dashboard")
        self.assertEqual(service["spec"]["ports"][0]["targetPort"], "dashboard")
        for kind, container in containers(documents).items():
            serves = kind == "Evaluator"
            self.assertEqual("--dashboard_port=6006" in container["args"], serves)
            self.assertEqual({"name": "dashboard", "containerPort": 6006} in container["ports"], serves)

    def test_all_pods_of_a_job_show_its_own_token(self):
        def secret_of(**changes):
            documents = render(settings(**changes))
            made = of_kind(documents, "Secret")
            name = made[0]["metadata"]["name"] if made else changes["job_secret"]
            volume = {"name": "job-token", "secret": {"secretName": name, "defaultMode": 0o440}}
            mount = {"name": "job-token", "mountPath": "/etc/keelson-job-token", "readOnly": True}
            for pod in pods(documents).values():
                (container,) = pod["containers"]
                self.assertIn("--job_token_file=/etc/keelson-job-token/token", container["args"])
                self.assertIn(volume, pod["volumes"])
                self.assertIn(mount, container["volumeMounts"])
            return name, [secret["stringData"]["token"] for secret in made]

        name, (first,) = secret_of()
        self.assertEqual(name, "mnist-job-token")
        self.assertRegex(first, "^[0-9a-f]{64}$")
        self.assertNotEqual(secret_of()[1], [first])
        self.assertEqual(secret_of(job_secret="mine"), ("mine", []))
        # A job in one process takes no calls.
        alone = render(VARIANTS["alone"])
        self.assertEqual(of_kind(render(settings(job_token=False)), "Secret"), [])
        self.assertEqual(of_kind(alone, "Secret"), [])
        self.assertNotIn("job-token", to_yaml(alone))

    def test_token_is_for_those_who_take_orders(self):
        def asking(**changes):
            documents = render(settings(auth_secret="t", **changes))
            volume = {"name": "token", "secret": {"secretName": "t", "defaultMode": 0o440}}
            mount = {"name": "token", "mountPath": "/etc/keelson-token", "readOnly": True}
            found = []
            for kind, pod in pods(documents).items():
                (container,) = pod["containers"]
                asks = "--auth_token_file=/etc/keelson-token/token" in container["args"]
                self.assertEqual(volume in pod["volumes"], asks)
                self.assertEqual(mount in container["volumeMounts"], asks)
                found += [kind] if asks else []
            return found

        self.assertEqual(asking(dashboard=True), ["Chief", "Evaluator"])
        # Without a page the evaluator would refuse the flag.
        self.assertEqual(asking(), ["Chief"])
        self.assertEqual(asking(chief=False), ["Worker"])

    def test_data_secrets_and_variables(self):
        documents = render(VARIANTS["everything"])
        for pod in pods(documents).values():
            container = pod["containers"][0]
            self.assertIn("--data_dir=/data", container["args"])
            self.assertIn({"name": "data", "mountPath": "/data", "readOnly": True}, container["volumeMounts"])
            self.assertIn({"name": "A", "value": "1"}, container["env"])
            self.assertIn({"name": "secret-0", "secret": {"secretName": "token"}}, pod["volumes"])

    def test_pods(self):
        pod = pods(render(VARIANTS["everything"]))["PS"]
        self.assertEqual(pod["nodeSelector"], {"pool": "gpu"})
        self.assertEqual(pod["serviceAccountName"], "trainer")
        self.assertEqual(pod["imagePullSecrets"], [{"name": "registry"}])
        spot = {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
        self.assertEqual(pod["tolerations"], [spot, {"key": "any", "operator": "Exists"}])

    def test_the_users_flags_come_last(self):
        for container in containers(render(VARIANTS["everything"])).values():
            self.assertEqual(container["args"][-1], "--learning_rate=0.01")
            self.assertIn("--training_steps=7", container["args"])

    def test_settings_are_checked(self):
        with self.assertRaisesRegex(InputError, "--workers: expected at least 1"):
            render(settings(workers=0))

    def test_the_readers_errors_are_input_errors(self):
        with self.assertRaisesRegex(InputError, "^submit: metadata.name: .*DNS-1035"):
            check_documents(render(settings(name="Mnist")))
        with self.assertRaisesRegex(InputError, "image"):
            check_documents(render(settings(image="")))
