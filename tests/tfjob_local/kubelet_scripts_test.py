"""Python scripts as workers and evaluators: which one runs, with which Python, and what it is told of its pod."""

import json
import os
import sys

import support
from kubelet_support import addresses, env, job, mounted, spec
from support import manifest, replica
from tfjob_api.model import ClusterObjects, ContainerPort
from tfjob_api.operator_version import NEWEST, OperatorVersion
from tfjob_local.kubelet.plan import PlanError
from tfjob_local.kubelet.planner import LocalSettings, PodPlanner
from tfjob_local.kubelet.programs import ImageMap

OWN = ("python3", "/opt/keelson/examples/train.py")
PAGE = (ContainerPort(2222, "tfjob-port"), ContainerPort(7070, "dashboard"))


class FakePages:
    def of(self, replica_name, manifests):
        return manifests + 1


class ScriptsTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.example = self.write("python/examples/train.py", "")
        for name in support.PROGRAMS:
            self.write_script(f"bin/{name}", support.program_script(name))

    def plan(self, replica_type="Worker", images=(), pages=FakePages(), run_commands=False, **fields):
        settings = LocalSettings(
            images=ImageMap.parse(images, self.path("bin")), volumes_dir=self.path("volumes"), working_dir=self.directory,
            cores=8, run_commands=run_commands, flags={"job_token_file": "/token"},
        )  # fmt: skip
        planner = PodPlanner(ClusterObjects(), settings, OperatorVersion.parse(NEWEST), pages)
        tfjob = job(spec(replica_type, **{"command": OWN, **fields}), spec("Chief"))
        plan = planner.plan(tfjob, addresses(tfjob), replica_type, 0)
        self.warnings = planner.warnings
        return plan.main

    def test_own_script_runs_with_the_launchers_python(self):
        main = self.plan(args=("--a=1",))
        self.assertEqual(main.argv, (sys.executable, self.example, "--a=1"))
        self.assertEqual((main.is_keelsons, main.ends_with_job), (False, True))
        self.assertEqual(self.warnings, [])
        self.assertEqual(main.environment["KEELSON_JOB_TOKEN_FILE"], "/token")
        self.assertEqual(json.loads(main.environment["TF_CONFIG"])["task"], {"type": "worker", "index": 0})

    def test_own_script_that_is_not_there(self):
        path = self.path("python", "examples")
        expected = f"Worker: command: /opt/keelson/examples/x.py: expected a script of {path}, found none"
        with self.assertRaises(PlanError) as caught:
            self.plan(command=("python3", "/opt/keelson/examples/x.py"))
        self.assertEqual(str(caught.exception), expected)

    def test_other_commands_are_no_scripts_of_ours(self):
        for path in ("/opt/train.py", "/opt/keelson/examples/../train.py", "/opt/keelson/examples/a/train.py"):
            main = self.plan(command=("python3", path))
            self.assertEqual(main.argv[0], self.path("bin", "worker"))
            self.assertEqual(self.warnings, [f"Worker: worker runs in place of the command python3 {path}"])

    def test_another_python_is_chosen_by_the_image(self):
        self.write_script("venv/python3", "")
        main = self.plan(images=(f"keelson*={self.path('venv')}",), image="keelson:latest-pytorch")
        self.assertEqual(main.argv, (self.path("venv", "python3"), self.example))
        self.write_script("bin/python3", "")
        self.assertEqual(self.plan(images=("*=as-is",)).argv, (self.path("bin", "python3"), self.example))

    def test_own_script_gets_no_variable_that_makes_it_another(self):
        variables = env(LD_PRELOAD="/x/evil.so", PYTHONPATH="/x", PYTHONSTARTUP="/x/evil.py", OMP_NUM_THREADS="3")
        environment = self.plan(environment=variables).environment
        self.assertEqual(
            sorted(set(environment) - {"PATH", "TF_CONFIG"}),
            ["KEELSON_BINARY_DIR", "KEELSON_JOB_TOKEN_FILE", "KEELSON_MOUNTS", "OMP_NUM_THREADS", "PYTHONPATH"],
        )
        self.assertEqual(environment["PYTHONPATH"], self.path("python"))
        self.assertEqual(environment["OMP_NUM_THREADS"], "3")
        environment = self.plan(environment=variables, run_commands=True).environment
        self.assertEqual(environment["LD_PRELOAD"], "/x/evil.so")

    def test_users_script_finds_package_programs_and_volumes(self):
        fields = mounted("persistentVolumeClaim", "c", path="/data")
        variables = env(PYTHONPATH="/mine", KEELSON_BINARY_DIR="/others")
        script = ("python3", "/my/train.py")
        main = self.plan(images=("*=as-is",), command=script, environment=variables, **fields)
        self.assertEqual(main.argv[1:], script[1:])
        self.assertFalse(main.ends_with_job)
        self.assertEqual(main.environment["PYTHONPATH"], f"/mine:{self.path('python')}")
        self.assertEqual(main.environment["KEELSON_BINARY_DIR"], "/others")
        self.assertEqual(json.loads(main.environment["KEELSON_MOUNTS"]), {"/data": self.path("volumes", "c")})
        main = self.plan(images=("*=as-is",), command=script)
        self.assertEqual(main.environment["KEELSON_BINARY_DIR"], self.path("bin"))

    def test_page_has_a_port_of_this_machine_where_the_manifest_has_one(self):
        def port(**options):
            return self.plan("Evaluator", **options).environment.get("KEELSON_PAGE_PORT")

        self.assertEqual(port(ports=PAGE), "7071")
        self.assertEqual(port(ports=PAGE, pages=None), "none")
        self.assertIsNone(port(ports=PAGE[:1]))

    def test_metrics_have_any_port_of_this_machine_where_the_manifest_asks_for_them(self):
        def told(**options):
            environment = self.plan(**options).environment
            return [environment.get(f"KEELSON_METRICS_{what}") for what in ("PORT", "ADDRESS")]

        asks = env(KEELSON_METRICS_PORT="9090")
        self.assertEqual(told(environment=asks), ["0", "127.0.0.1"])
        mine = {"images": ("*=as-is",), "command": ("python3", "/my/train.py")}
        self.assertEqual(told(environment=asks, **mine), ["0", "127.0.0.1"])
        self.assertEqual(told(environment=env(KEELSON_METRICS_PORT="9090", KEELSON_METRICS_ADDRESS="::1"), **mine), ["0", "::1"])
        self.assertEqual(told(), [None, None])
        self.assertEqual(self.warnings, [])


class ModelClaimTest(support.LauncherTest):
    """The claim that is the chief's --model_dir is the run's model directory for everybody."""

    MOUNT = "volumeMounts: [{name: m, mountPath: /model}]"
    CLAIM = "volumes: [{name: m, persistentVolumeClaim: {claimName: models}}]"

    def mounts(self, chief, *flags):
        command = f"command: [sh, -c, 'echo \"$KEELSON_MOUNTS\" > {self.path('told')}']\n{self.MOUNT}"
        text = manifest(
            replica("Chief", container=f"command: [chief]\nargs: [{chief}]\n{self.MOUNT}", pod=self.CLAIM),
            replica("PS"),
            replica("Worker", container=command, pod=self.CLAIM).replace("image: keelson", "image: own"),
        )
        self.set_program("chief", f"until [ -s '{self.path('told')}' ]; do sleep 0.01; done")
        code, output = self.run_job(text, "--image=own=as-is", *flags)
        self.assertEqual(code, 0, output)
        return json.loads(self.read("told"))

    def test_it_is_where_the_programs_write(self):
        self.assertEqual(self.mounts("--model_dir=/model"), {"/model": self.path("run", "model")})

    def test_users_model_dir(self):
        found = self.mounts("--model_dir=/model/", f"--model_dir={self.path('mine')}")
        self.assertEqual(found, {"/model": self.path("mine")})

    def test_users_claim(self):
        os.makedirs(self.path("claim"))
        found = self.mounts("--model_dir=/model", f"--pvc=models={self.path('claim')}")
        self.assertEqual(found, {"/model": self.path("claim")})

    def test_a_directory_of_a_claim_leaves_the_claim_alone(self):
        self.assertEqual(self.mounts("--model_dir=/model/job"), {"/model": self.path("run", "volumes", "models")})
