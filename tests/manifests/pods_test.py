"""Properties of every pod of every manifest, whichever object makes it."""

import re
import unittest
from typing import Any, List, Mapping

from support import (
    CONFIG_FROM_SCRIPT,
    Role,
    all_roles,
    default_of,
    is_collective,
    is_of_scripts,
    needs_programs,
    peers_port,
    roles_of,
)

from tfjob_api.job_kind import JOB_KINDS, TF_JOB

CONFIG_PATH = "/etc/keelson/job.textproto"
# A program that hangs is ended 5 seconds after --leave_within; the rest is what a pod's end takes besides.
MARGIN_SECONDS = 10


def ports(container: Mapping[str, Any]) -> Mapping[str, int]:
    return {port["name"]: port["containerPort"] for port in container["ports"]}


class EveryPod(unittest.TestCase):
    def each(self) -> List[Role]:
        roles = all_roles()
        self.assertGreaterEqual(len(roles), 4 * 8)
        return roles

    def test_every_job_with_servers_has_all_four_roles(self) -> None:
        for path in sorted({role.path for role in self.each() if not is_collective(role.path)}):
            with self.subTest(path):
                found = sorted(role.role for role in roles_of(path))
                self.assertEqual(found, ["chief", "evaluator", "ps", "worker"])

    def test_runs_the_same_config_from_the_same_config_map(self) -> None:
        for role in self.each():
            if is_of_scripts(role.path):
                continue
            with self.subTest(role.name):
                self.assertEqual(role.flags()["config"], CONFIG_PATH)
                (mount,) = [m for m in role.container["volumeMounts"] if m["name"] == "config"]
                self.assertEqual(mount["mountPath"], "/etc/keelson")
                self.assertIs(mount["readOnly"], True)
                first = roles_of(role.path)[0]
                self.assertEqual(volume(role, "config"), volume(first, "config"))
                self.assertIn("configMap", volume(role, "config"))

    def test_programs_wait_for_what_a_script_says_of_a_job_of_scripts(self) -> None:
        roles = [role for role in self.each() if is_of_scripts(role.path)]
        self.assertEqual([role.role for role in roles if not role.script], ["chief", "ps"])
        for role in roles:
            with self.subTest(role.name):
                self.assertEqual(role.flags().get("config"), None if role.script else CONFIG_FROM_SCRIPT)
                self.assertEqual([v for v in role.pod["volumes"] if "configMap" in v], [])

    def test_scripts_are_in_the_repository_and_have_a_directory_for_passing_files(self) -> None:
        """The package writes what a script proposes there, and PyTorch's loaders their sockets."""
        scripts = [role for role in self.each() if role.script]
        self.assertEqual([role.role for role in scripts], ["worker", "evaluator", "master", "worker"])
        for role in scripts:
            with self.subTest(role.name):
                self.assertTrue(role.script and role.script.is_file(), role.script)
                self.assertEqual(volume(role, "tmp"), {"name": "tmp", "emptyDir": {}})
                (mount,) = [m for m in role.container["volumeMounts"] if m["name"] == "tmp"]
                self.assertEqual(mount["mountPath"], "/tmp")

    def test_roles_of_a_job_share_overrides_and_model_directory(self) -> None:
        """The hash that roles compare covers the overrides; snapshots are written by all servers."""
        shared = ("batch_size", "training_steps", "epochs", "learning_rate", "seed", "wire", "pipeline_depth")
        for role in self.each():
            with self.subTest(role.name):
                first = roles_of(role.path)[0]
                for flag in shared:
                    self.assertEqual(role.flags().get(flag), first.flags().get(flag), flag)
                self.assertEqual(role.model_dir(), first.model_dir())
                self.assertEqual(volume(role, "model"), volume(first, "model"))

    def test_mounts_refer_to_volumes_and_every_volume_is_mounted(self) -> None:
        for role in self.each():
            with self.subTest(role.name):
                volumes = [v["name"] for v in role.pod["volumes"]]
                self.assertEqual(len(volumes), len(set(volumes)))
                mounted = [m["name"] for c in role.containers() for m in c.get("volumeMounts", ())]
                self.assertEqual(set(mounted), set(volumes))
                for container in role.containers():
                    paths = [m["mountPath"] for m in container.get("volumeMounts", ())]
                    self.assertEqual(len(paths), len(set(paths)))

    def test_paths_in_flags_and_scripts_are_on_mounted_volumes(self) -> None:
        for role in self.each():
            with self.subTest(role.name):
                mounts = [m["mountPath"] for m in role.container["volumeMounts"]]
                for path in role.paths():
                    self.assertTrue(any(path == m or path.startswith(m + "/") for m in mounts), path)

    @needs_programs
    def test_has_time_to_end(self) -> None:
        """A server waits for the chief's last snapshot, which takes a second for each GB (docs/performance.md)."""
        default = default_of("ps_server", "leave_within")
        for role in self.each():
            with self.subTest(role.name):
                leave_within = int(role.flags().get("leave_within", default))
                self.assertGreaterEqual(
                    role.pod["terminationGracePeriodSeconds"], leave_within + MARGIN_SECONDS
                )

    def test_ports_are_named_for_the_service_and_the_flags(self) -> None:
        """The operator copies all ports into the pod's Service, which wants unique names."""
        for role in self.each():
            with self.subTest(role.name):
                found = ports(role.container)
                self.assertEqual(len(found), len(role.container["ports"]))
                self.assertEqual(len(set(found.values())), len(found))
                for name in found:
                    self.assertRegex(name, r"^[a-z][-a-z0-9]{0,14}$")
                name, number = next(iter(found.items()))
                kind = JOB_KINDS.get(role.kind, TF_JOB)
                if role.path != "deploy/trainer/collective.yaml":
                    self.assertEqual((name, number), (kind.port_name, kind.port))
                self.assertEqual(found.pop(name), peers_port(role))
                self.assertEqual(found.pop("metrics", None), role.metrics_port)
                dashboard = found.pop("dashboard", None)
                self.assertEqual(role.page_port, dashboard)
                self.assertEqual(dashboard is not None, role.role == "evaluator")
                self.assertEqual(found, {})

    def test_prometheus_and_istio_annotations(self) -> None:
        for role in self.each():
            with self.subTest(role.name):
                annotations = role.template["metadata"]["annotations"]
                self.assertEqual(annotations["sidecar.istio.io/inject"], "false")
                port = role.metrics_port
                self.assertEqual(annotations.get("prometheus.io/scrape"), port and "true")
                self.assertEqual(annotations.get("prometheus.io/port"), port and str(port))
                self.assertEqual(role.template["metadata"]["labels"]["app.kubernetes.io/name"], "keelson")

    def test_no_readiness_probe(self) -> None:
        """The operator's Services publish a name when its pod is ready: a probe would delay the start."""
        for role in self.each():
            for container in role.containers():
                with self.subTest(role.name, container=container["name"]):
                    self.assertNotIn("readinessProbe", container)

    def test_needs_no_privileges(self) -> None:
        """The rules of the Pod Security Standard "restricted"."""
        for role in self.each():
            with self.subTest(role.name):
                context = role.pod["securityContext"]
                self.assertIs(context["runAsNonRoot"], True)
                self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
                self.assertNotEqual(context.get("runAsUser"), 0)
            for container in role.containers():
                with self.subTest(role.name, container=container["name"]):
                    context = container["securityContext"]
                    self.assertIs(context["allowPrivilegeEscalation"], False)
                    self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
                    self.assertIs(context["readOnlyRootFilesystem"], True)

    def test_volumes_belong_to_the_programs_group_but_on_openshift(self) -> None:
        for role in self.each():
            with self.subTest(role.name):
                context = role.pod["securityContext"]
                names = ("runAsUser", "runAsGroup", "fsGroup")
                expected = [None] * 3 if role.path.startswith("deploy/openshift/") else [65532] * 3
                self.assertEqual([context.get(name) for name in names], expected)

    def test_says_what_it_needs(self) -> None:
        for role in self.each():
            for container in role.containers():
                with self.subTest(role.name, container=container["name"]):
                    resources = container["resources"]
                    self.assertLessEqual({"cpu", "memory"}, set(resources["requests"]))
                    self.assertIn("ephemeral-storage", resources["limits"])
                    self.assertEqual(resources["limits"]["memory"], resources["requests"]["memory"])
                    cpu = resources["limits"].get("cpu")
                    # A part of a core as limit would leave every thread waiting for most of the time.
                    self.assertTrue(cpu is None or re.fullmatch(r"\d+", cpu), cpu)

    def test_gpus_are_for_workers_with_the_gpu_image(self) -> None:
        asking = []
        for role in self.each():
            with self.subTest(role.name):
                wants_gpu = "nvidia.com/gpu" in role.container["resources"]["limits"]
                self.assertEqual(wants_gpu, role.container["image"].endswith("-cuda"))
                self.assertEqual(wants_gpu, role.flags().get("device", "").startswith("cuda"))
                self.assertTrue(role.role == "worker" or not wants_gpu)
                asking += [role.path] if wants_gpu else []
        self.assertEqual(asking, ["deploy/tfjob/mnist_gpu.yaml"])

    def test_environment_is_named_once(self) -> None:
        for role in self.each():
            with self.subTest(role.name):
                names = [variable["name"] for variable in role.container.get("env", ())]
                self.assertEqual(len(names), len(set(names)))
                # The operator's, and Kubernetes' own, which win anyway.
                self.assertNotIn("TF_CONFIG", names)
                if role.kind != "StatefulSet":
                    self.assertNotIn("JOB_COMPLETION_INDEX", names)

    def test_variables_in_the_args_are_defined(self) -> None:
        for role in self.each():
            with self.subTest(role.name):
                names = {variable["name"] for variable in role.container.get("env", ())}
                used = set(re.findall(r"\$\((\w+)\)", " ".join(role.arguments())))
                # Programs and libraries read these themselves.
                self.assertEqual(used, names - {"JOB_COMPLETION_INDEX", "OMP_NUM_THREADS"})

    def test_only_readers_of_data_mount_it_and_only_its_fetcher_writes_it(self) -> None:
        for role in roles_of("deploy/tfjob/mnist_data.yaml"):
            with self.subTest(role.name):
                reads = "data_dir" in role.flags()
                self.assertEqual(reads, role.role != "ps")
                self.assertEqual(reads, "initContainers" in role.pod)
                writing = [
                    container["name"]
                    for container in role.containers()
                    for mount in container["volumeMounts"]
                    if mount["name"] == "data" and not mount.get("readOnly", False)
                ]
                self.assertEqual(writing, ["fetch-data"] if role.role == "chief" else [])


class Restarts(unittest.TestCase):
    """A transient exit (138) or a lost pod is replaced, a permanent one fails the job."""

    def test_of_jobs_of_the_training_operator(self) -> None:
        for role in all_roles():
            if role.kind not in JOB_KINDS:
                continue
            with self.subTest(role.name):
                expected = "OnFailure" if role.role == "evaluator" else "ExitCode"
                self.assertEqual(role.owner["restartPolicy"], expected)
                # The operator would overwrite it, with a warning.
                self.assertNotIn("restartPolicy", role.pod)

    def test_of_jobs(self) -> None:
        for role in all_roles():
            if role.kind in (*JOB_KINDS, "StatefulSet"):
                continue
            with self.subTest(role.name):
                # The only policy that a podFailurePolicy allows.
                self.assertEqual(role.pod["restartPolicy"], "Never")
                fail, ignore = role.owner["podFailurePolicy"]["rules"]
                self.assertEqual(fail["action"], "FailJob")
                self.assertEqual(fail["onExitCodes"]["containerName"], role.container["name"])
                self.assertEqual(fail["onExitCodes"]["operator"], "In")
                self.assertEqual(fail["onExitCodes"]["values"], [1, 2, 126, 127])
                self.assertEqual(ignore["action"], "Ignore")
                self.assertEqual(ignore["onPodConditions"], [{"type": "DisruptionTarget", "status": "True"}])
                self.assertGreaterEqual(role.owner["backoffLimit"], 10)

    def test_stateful_sets_know_no_other_policy_than_always(self) -> None:
        (role,) = [role for role in all_roles() if role.kind == "StatefulSet"]
        self.assertEqual(role.pod.get("restartPolicy", "Always"), "Always")


def volume(role: Role, name: str) -> Mapping[str, Any]:
    (found,) = [v for v in role.pod["volumes"] if v["name"] == name]
    return found
