"""The compose files: a cluster whose members find each other, with flags that the programs have."""

import os
import re
import shutil
import subprocess
import unittest
from typing import Dict, List

import support

# Every test of a service concerns all of them.
SERVICES: Dict[str, Dict] = support.compose("compose.yaml")["services"]
# The services that `up` starts: the job.
CLUSTER = {name: service for name, service in SERVICES.items() if "profiles" not in service}


def words(service: Dict) -> List[str]:
    return [*service["entrypoint"], *service.get("command", [])]


def program(service: Dict) -> str:
    return words(service)[0]


def flags(service: Dict) -> Dict[str, str]:
    """Parses flags of the form "--name=value" or "--name"."""
    return dict(re.fullmatch(r"--(\w+)(?:=(.*))?", word).groups() for word in words(service)[1:])


def expand(hosts: str) -> List[str]:
    """ "ps-{0..1}:2222" and comma-separated lists."""
    found = re.search(r"\{(\d+)\.\.(\d+)\}", hosts)
    if not found:
        return hosts.split(",")
    first, last = map(int, found.groups())
    return [hosts[: found.start()] + str(index) + hosts[found.end():] for index in range(first, last + 1)]


class ClusterTest(unittest.TestCase):
    """The members of the cluster know each other, and mean the same job."""

    def members(self, name: str) -> List[str]:
        return [service for service in CLUSTER if program(CLUSTER[service]) == name]

    def test_every_role_is_there(self):
        self.assertEqual(len(self.members("chief")), 1)
        self.assertEqual(len(self.members("evaluator")), 1)
        self.assertGreaterEqual(len(self.members("ps_server")), 2)
        self.assertGreaterEqual(len(self.members("worker")), 2)

    def test_hosts_are_services_in_the_order_of_their_index(self):
        by_index = {flags(CLUSTER[name])["task_index"]: name for name in self.members("ps_server")}
        expected = [f"{by_index[str(index)]}:2222" for index in range(len(by_index))]
        for name, service in CLUSTER.items():
            with self.subTest(name):
                self.assertEqual(expand(flags(service)["ps_hosts"]), expected)
                self.assertEqual(expand(flags(service)["chief_hosts"]), [f"{self.members('chief')[0]}:2222"])

    def test_workers_have_an_index_each(self):
        indices = sorted(flags(CLUSTER[name])["task_index"] for name in self.members("worker"))
        self.assertEqual(indices, [str(index) for index in range(len(indices))])

    def test_workers_are_named_nowhere_so_that_more_can_join(self):
        for name, service in CLUSTER.items():
            self.assertNotIn("worker_hosts", flags(service), name)

    def test_all_have_the_same_config_and_model_directory(self):
        for flag in ("config", "model_dir"):
            values = {flags(service)[flag] for service in CLUSTER.values()}
            self.assertEqual(len(values), 1, flag)
        config = flags(CLUSTER["chief"])["config"]
        self.assertTrue(os.path.isfile(os.path.join(support.REPOSITORY, config)), config)

    def test_the_model_directory_is_a_shared_volume(self):
        volumes = support.compose("compose.yaml")["volumes"]
        for name, service in CLUSTER.items():
            with self.subTest(name):
                mounts = dict(mount.removesuffix(":ro").split(":")[::-1] for mount in service["volumes"])
                self.assertIn(mounts[flags(service)["model_dir"]], volumes)

    def test_only_workers_cannot_write_the_model(self):
        for name, service in CLUSTER.items():
            read_only = [mount for mount in service["volumes"] if mount.endswith(":ro")]
            self.assertEqual(bool(read_only), program(service) == "worker", name)

    def test_the_page_of_a_job_that_is_over(self):
        (name,) = set(SERVICES) - set(CLUSTER)
        service, evaluator = SERVICES[name], CLUSTER["evaluator"]
        self.assertEqual(program(service), "evaluator")
        found = flags(service)
        # It takes part in no job: other flags would be refused.
        self.assertEqual(set(found), {"serve_only", "model_dir", "dashboard_port"})
        for flag in ("model_dir", "dashboard_port"):
            self.assertEqual(found[flag], flags(evaluator)[flag])
        for key in ("volumes", "ports", "image"):
            self.assertEqual(service[key], evaluator[key])

    def test_the_dashboard_is_published_on_this_host_only(self):
        port = flags(CLUSTER["evaluator"])["dashboard_port"]
        self.assertEqual(CLUSTER["evaluator"]["ports"], [f"127.0.0.1:{port}:{port}"])


class ServiceTest(unittest.TestCase):
    """Each service runs a program of the image, with flags that it has, restarted and stopped as it needs."""

    def test_programs_are_in_the_image(self):
        for name, service in SERVICES.items():
            self.assertIn(program(service), support.programs_of_image(), name)

    def test_flags_are_defined_in_the_sources(self):
        for name, service in SERVICES.items():
            for flag in flags(service):
                with self.subTest(f"{name} --{flag}"):
                    folders = ("core/startup", "dashboard", program(service))
                    self.assertTrue(any(defines(flag, folder) for folder in folders))

    def test_a_failure_is_restarted_and_an_end_is_not(self):
        for name, service in SERVICES.items():
            self.assertRegex(service["restart"], r"^on-failure:\d+$", name)

    def test_a_snapshot_fits_into_the_grace_period(self):
        for name, service in SERVICES.items():
            self.assertGreaterEqual(int(service["stop_grace_period"].rstrip("s")), 110, name)

    def test_rights_are_few(self):
        for name, service in SERVICES.items():
            with self.subTest(name):
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertIs(service["read_only"], True)
                self.assertNotIn("user", service)
                self.assertNotIn("privileged", service)

    def test_memory_and_processes_have_limits(self):
        for name, service in SERVICES.items():
            with self.subTest(name):
                self.assertRegex(service["mem_limit"], r"^\d+[mg]$")
                self.assertGreater(service["pids_limit"], 0)

    def test_images_are_built_from_the_dockerfile(self):
        for name, service in SERVICES.items():
            build = service["build"]
            context = os.path.normpath(os.path.join(support.FOLDER, build["context"]))
            self.assertEqual(context, support.REPOSITORY, name)
            self.assertTrue(os.path.isfile(os.path.join(context, build["dockerfile"])), name)


class CudaTest(unittest.TestCase):
    """compose.cuda.yaml changes the workers of compose.yaml, all of them, and nothing else."""

    def setUp(self):
        self.services = support.compose("compose.cuda.yaml")["services"]

    def test_the_workers_and_no_others(self):
        workers = {name for name in SERVICES if program(SERVICES[name]) == "worker"}
        self.assertEqual(set(self.services), workers)

    def test_image_and_gpu(self):
        for name, service in self.services.items():
            with self.subTest(name):
                self.assertEqual(service["build"]["args"], {"VARIANT": "cuda"})
                self.assertNotEqual(service["image"], SERVICES[name]["image"])
                devices = service["deploy"]["resources"]["reservations"]["devices"]
                self.assertEqual([device["capabilities"] for device in devices], [["gpu"]])


class ComposeToolTest(unittest.TestCase):
    """docker-compose takes the files."""

    def test_config(self):
        tool = shutil.which("docker-compose")
        if not tool:
            self.skipTest("no docker-compose")
        run = subprocess.run(
            [tool, "-f", "compose.yaml", "-f", "compose.cuda.yaml", "config"],
            cwd=support.FOLDER, capture_output=True, text=True, timeout=support.DEADLINE_SECONDS, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)


def defines(flag: str, folder: str) -> bool:
    """Whether a source file below the folder has "--flag" as the beginning of a literal."""
    for parent, _, names in os.walk(os.path.join(support.REPOSITORY, folder)):
        for name in names:
            if name.endswith(".cc") and re.search(rf'"--{flag}[",]', support.read(parent, name)):
                return True
    return False
