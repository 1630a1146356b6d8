"""From a replica of a TFJob to the processes of its pod; nothing is started or written on the way."""

import os
import socket
import unittest
from unittest import mock

import support
from kubelet_support import addresses, env, job, mounted, spec
from tfjob_api.model import ClusterObjects, Container, ContainerPort, EnvironmentVariable, Volume, VolumeMount
from tfjob_api.operator_version import NEWEST, OperatorVersion
from tfjob_local.kubelet.permissions import Permissions
from tfjob_local.kubelet.plan import PlanError
from tfjob_local.kubelet.planner import LocalSettings, PodPlanner
from tfjob_local.kubelet.programs import ImageMap


# This machine alone.
LOCAL_PAGE = "--dashboard_address=127.0.0.1"
LOCAL_METRICS = "--metrics_address=127.0.0.1"


class FakePages:
    """Every page has port 7001."""

    def __init__(self):
        self.asked = []

    def of(self, replica_name, manifests):
        self.asked.append((replica_name, manifests))
        return 7001


class PlannerTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        for name in support.PROGRAMS:
            self.write_script(f"bin/{name}", support.program_script(name))
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        patch = mock.patch.dict(os.environ, environment, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def planner(
        self,
        version=NEWEST,
        images=(),
        objects=ClusterObjects(),
        cores=8,
        pages=None,
        run_commands=True,
        **settings,
    ):
        return PodPlanner(
            objects,
            LocalSettings(
                images=ImageMap.parse(images, self.path("bin")),
                volumes_dir=self.path("volumes"),
                working_dir="/work_dir",
                cores=cores,
                run_commands=run_commands,
                **settings,
            ),
            OperatorVersion.parse(version),
            pages,
        )

    def plan(self, *specs, index=0, planner=None, **settings):
        """Plans one replica of the first type; a worker and a server are added so that the job is not a single
        replica."""
        if sum(each.replicas for each in specs) == 1 and specs[0].type != "Worker":
            specs += (spec("Worker"), *(spec(other) for other in ("PS",) if specs[0].type != other))
        tfjob = specs[0] if not hasattr(specs[0], "container") else job(*specs)
        self.used = planner or self.planner(**settings)
        return self.used.plan(tfjob, addresses(tfjob), specs[0].type, index)

    def args(self, *specs, **settings):
        return list(self.plan(*specs, **settings).main.argv[1:])

    def assert_refused(self, text, *specs, **settings):
        with self.assertRaises(PlanError) as caught:
            self.plan(*specs, **settings)
        self.assertEqual(str(caught.exception), text)


class ArgumentsTest(PlannerTest):
    def test_program_and_pod(self):
        plan = self.plan(spec("PS", policy="ExitCode", command=("ps_server",), args=("--a=1",)))
        self.assertEqual(plan.main.argv, (self.path("bin", "ps_server"), "--a=1"))
        self.assertEqual(plan.main.container, "tensorflow")
        self.assertEqual((plan.restart_policy, plan.grace_seconds, plan.init), ("ExitCode", 30.0, ()))
        self.assertEqual(self.used.warnings, [])

    def test_flags_replace_the_manifests(self):
        args = ("--training_steps=1", "--model_dir", "/model", "--seed=3")
        self.assertEqual(
            self.args(spec("PS", args=args), flags={"training_steps": "500", "model_dir": "/m"}),
            ["--seed=3", "--training_steps=500", "--model_dir=/m"],
        )

    def test_steps_replace_epochs(self):
        args = ("--epochs=2", "--seed=3")
        self.assertEqual(
            self.args(spec("PS", args=args), flags={"training_steps": "500"}), ["--seed=3", "--training_steps=500"]
        )

    def test_the_classic_trainer_runs(self):
        args = ("--batch_size=32", "--training_steps=9")
        words = {"command": ("python", "-m", "trainer.task"), "args": args}
        self.assertEqual(
            self.args(spec("Worker", 2, **words), spec("PS"), flags={"model_dir": "/m"}),
            ["--batch_size=32", "--training_steps=9", "--model_dir=/m", "--compute_threads=4"],
        )

    def test_data_that_a_trainer_would_fetch(self):
        """A claim that the user names, and what an init container fills, may hold data; else nothing will."""
        fields = mounted("persistentVolumeClaim", "c", path="/data")
        trainer = {"command": ("python", "x.py"), "args": ("--data_dir=$(D)",), "environment": env(D="/data")}
        own = self.path("volumes", "c")
        self.assertEqual(self.args(spec("PS", **trainer, **fields)), [])
        remark = (
            f'--data_dir: expected a directory with IDX files (*-images-idx3-ubyte), found "{own}"; left out'
        )
        self.assertIn(remark, self.used.warnings)
        claims = {"c": self.path("c")}
        self.assertEqual(
            self.args(spec("PS", **trainer, **fields), claims=claims), [f"--data_dir={self.path('c')}"]
        )
        fields["pod"]["init_containers"] = (Container("fill", "busybox", ("sh", "-c", "x")),)
        ps = spec("PS", **trainer, **fields)
        self.assertEqual(self.args(ps), [f"--data_dir={own}"])
        self.assertEqual(self.args(ps, run_commands=False), [])

    def test_data_of_the_users_config(self):
        """A configuration says which files it reads: any may be those."""
        fields = mounted("persistentVolumeClaim", "c", path="/data")
        ps = spec("PS", command=("python", "x.py"), args=("--data_dir=/data",), **fields)
        own = self.path("volumes", "c")
        os.makedirs(own)
        self.assertEqual(self.args(ps, flags={"config": "/my.textproto"}), ["--config=/my.textproto"])
        with open(os.path.join(own, "a9a.t"), "wb"):
            pass
        self.assertEqual(self.args(ps), [])
        self.assertEqual(
            self.args(ps, flags={"config": "/my.textproto"}), [f"--data_dir={own}", "--config=/my.textproto"]
        )

    def test_variables_have_paths_of_this_machine(self):
        fields = mounted("persistentVolumeClaim", "c", path="/model")
        script = ("sh", "-c", "exec ps_server --model_dir=$M")
        plan = self.plan(spec("PS", command=script, environment=env(M="/model/a"), **fields))
        self.assertEqual(plan.main.argv[1:], (f"--model_dir={self.path('volumes', 'c', 'a')}",))

    def test_device_of_a_machine_with_and_without_gpus(self):
        worker = spec("Worker", command=("python", "x.py", "--device=gpu"))
        self.assertEqual(self.args(worker, gpus=("0",)), ["--device=cuda"])
        self.assertEqual(self.args(worker, gpus=()), [])

    def test_training_flags_are_for_those_who_train(self):
        settings = {"training_flags": {"device": "cuda"}, "flags": {"seed": "1"}}
        worker = spec("Worker", args=("--device=cpu", "--compute_threads=1"))
        self.assertEqual(
            self.args(worker, spec("PS"), **settings), ["--compute_threads=1", "--seed=1", "--device=cuda"]
        )
        for other in ("PS", "Chief", "Evaluator"):
            self.assertEqual(self.args(spec(other), **settings), ["--seed=1"])
        # The whole job in one process.
        self.assertEqual(self.args(spec("Worker"), **settings), ["--seed=1", "--device=cuda"])

    def test_extra_arguments_come_last_and_replace_too(self):
        settings = {"flags": {"training_steps": "5"}, "extra_args": ("--seed=4", "--training_steps=6")}
        args = self.args(spec("PS", args=("--seed=3",)), **settings)
        self.assertEqual(args, ["--seed=4", "--training_steps=6"])

    def test_single_replica_is_a_chief_without_tf_config(self):
        for version in (NEWEST, "0.5"):
            plan = self.plan(spec("Worker"), version=version)
            self.assertEqual(plan.main.argv, (self.path("bin", "chief"),))
            self.assertNotIn("TF_CONFIG", plan.main.environment)

    def test_own_command_gets_no_flags(self):
        settings = {"images": ("*=as-is",), "flags": {"model_dir": "/m"}, "extra_args": ("--seed=1",)}
        plan = self.plan(spec("PS", command=("sh", "-c", "x")), **settings)
        self.assertEqual(plan.main.argv[1:], ("-c", "x"))
        self.assertEqual(self.used.warnings, ["PS: runs the manifest's own command, without --seed=1"])
        self.assertTrue(plan.main.environment["PATH"].startswith(self.path("bin") + os.pathsep))

    def test_references(self):
        fields = {"environment": env(A="1"), "args": ("--a=$(A)", "--b=$$(A)", "--c=$(TF_CONFIG)")}
        args = self.args(spec("PS", command=("ps_server",), **fields))
        self.assertEqual(args[:2], ["--a=1", "--b=$(A)"])
        self.assertIn('"task":{"type":"ps","index":0}', args[2])

    def test_paths(self):
        fields = mounted("persistentVolumeClaim", "c", path="/model")
        plan = self.plan(
            spec("PS", command=("ps_server",), args=("--config=/model/a",), environment=env(D="/model"),
                 working_dir="/model/w", **fields)
        )
        self.assertEqual(plan.main.argv[1:], (f"--config={self.path('volumes', 'c', 'a')}",))
        self.assertEqual(plan.main.environment["D"], self.path("volumes", "c"))
        self.assertEqual(plan.main.working_dir, self.path("volumes", "c", "w"))
        self.assertEqual(plan.mounts, {"/model": self.path("volumes", "c")})
        self.assertEqual([d.path for d in plan.directories], [self.path("volumes", "c")])
        self.assertTrue(plan.main.is_keelsons)
        self.assertFalse(os.path.exists(self.path("volumes")))

    def test_own_program_in_a_volume(self):
        fields = mounted("hostPath", self.directory, path="/code")
        os.chmod(self.write("run", ""), 0o755)
        plan = self.plan(spec("PS", command=("/code/run", "/code"), **fields), images=("*=as-is",))
        self.assertEqual(plan.main.argv, (self.path("run"), self.directory))

    def test_service_names(self):
        args = ("--ps_hosts=job-ps-{0..1}.default.svc:2222",)
        plan = self.plan(
            spec("PS", 2, command=("ps_server",), args=args, environment=env(P="job-ps-1:2222"))
        )
        self.assertEqual(plan.main.argv[1:], ("--ps_hosts=127.0.0.1:10000,127.0.0.1:10001",))
        self.assertEqual(plan.main.environment["P"], "127.0.0.1:10001")

    def test_missing_objects_are_refused(self):
        self.assert_refused(
            'ps-0: volume v: the manifest\'s files: no Secret "s", there is none at all',
            spec("PS", **mounted("secret", "s")),
        )
        self.assert_refused(
            'PS: args: job-ps-1:2222: no replica "ps-1", the job has ps-0',
            spec("PS", args=("job-ps-1:2222",)),
        )

    def test_files_for_the_kubelet_are_not_written(self):
        ps = spec("PS", command=("ps_server",), args=("--termination_log=/etc/x", "--termination_log", "/y"))
        self.assertEqual(self.args(ps), [])
        self.assertEqual(self.args(ps, extra_args=("--termination_log=z",)), ["--termination_log=z"])


class MachineTest(PlannerTest):
    """Resources that replicas share here, but not on a cluster."""

    def test_workers_share_the_cores(self):
        plan = self.plan(spec("Worker", 3), spec("PS"))
        self.assertEqual(plan.main.argv[1:], ("--compute_threads=2",))
        self.assertEqual(plan.main.environment["OMP_NUM_THREADS"], "2")
        self.assertEqual(self.args(spec("Worker", 3), spec("PS"), cores=1), ["--compute_threads=1"])

    def test_users_thread_counts_stay(self):
        worker = spec("Worker", 2, args=("--compute_threads=7",), environment=env(OMP_NUM_THREADS="3"))
        plan = self.plan(worker, spec("PS"))
        self.assertEqual(plan.main.argv[1:], ("--compute_threads=7",))
        self.assertEqual(plan.main.environment["OMP_NUM_THREADS"], "3")
        extra = ("--compute_threads=5",)
        self.assertEqual(self.args(spec("Worker", 2), spec("PS"), extra_args=extra), list(extra))
        with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "9"}):
            self.assertNotIn("OMP_NUM_THREADS", self.plan(spec("Worker", 2)).main.environment)

    def test_other_roles_get_no_thread_count(self):
        for replica_type in ("PS", "Chief", "Evaluator"):
            self.assertEqual(self.args(spec(replica_type)), [])

    def test_cpu_limit(self):
        def limited(replica_type, limit, replicas=1, **settings):
            return self.args(spec(replica_type, replicas, limits={"cpu": limit}), spec("PS"), **settings)

        self.assertEqual(limited("Worker", "1500m", 2), ["--compute_threads=2"])
        self.assertEqual(limited("Worker", "6", 2), ["--compute_threads=4"])
        self.assertEqual(limited("Worker", "100m", 2), ["--compute_threads=1"])
        self.assertEqual(limited("Evaluator", "3"), ["--compute_threads=3"])
        self.assertEqual(limited("Evaluator", "99"), ["--compute_threads=8"])
        plan = self.plan(spec("PS", limits={"cpu": "3"}))
        self.assertEqual((plan.main.argv[1:], plan.main.environment["OMP_NUM_THREADS"]), ((), "3"))

    def test_gpus(self):
        planner = self.planner(gpus=("0", "1"))
        specs = (spec("Worker", 2, limits={"nvidia.com/gpu": "1"}), spec("PS"))
        devices = [self.plan(*specs, index=i, planner=planner).main.environment for i in (0, 1)]
        self.assertEqual([each["CUDA_VISIBLE_DEVICES"] for each in devices], ["0", "1"])
        own = spec("Worker", 2, limits={"nvidia.com/gpu": "1"}, environment=env(CUDA_VISIBLE_DEVICES="3"))
        self.assertEqual(self.plan(own, gpus=("0",)).main.environment["CUDA_VISIBLE_DEVICES"], "3")
        self.assertNotIn("CUDA_VISIBLE_DEVICES", self.plan(specs[0]).main.environment)

    def test_ports_that_replicas_would_share(self):
        args = self.args(spec("PS", command=("ps_server",), args=("--metrics_port=9090", "--port", "2222")))
        self.assertEqual(args, ["--metrics_port=0", LOCAL_METRICS])
        self.assertEqual(self.used.warnings, [])

    def test_port_of_a_single_replica(self):
        with socket.socket() as listener:
            listener.bind(("0.0.0.0", 0))
            listener.listen()
            port = listener.getsockname()[1]
            alone = spec("Worker", args=(f"--metrics_port={port}",))
            self.assertEqual(self.args(alone), ["--metrics_port=0", LOCAL_METRICS])
            self.assertEqual(
                self.used.warnings,
                [
                    f"--metrics_port={port} becomes --metrics_port=0, port {port} is taken: "
                    "the log names the port"
                ],
            )
        planner = self.planner()
        self.assertEqual(self.args(alone, planner=planner), [f"--metrics_port={port}", LOCAL_METRICS])
        # Planned once more while it runs, as before another replica is added.
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("0.0.0.0", port))
            listener.listen()
            self.assertEqual(self.args(alone, planner=planner), [f"--metrics_port={port}", LOCAL_METRICS])
        any_port = ("--metrics_port=0",)
        chief = spec("Chief", command=("chief",), args=any_port)
        self.assertEqual(self.args(chief), [*any_port, LOCAL_METRICS])
        wide = ("--metrics_port=0", "--metrics_address=0.0.0.0")
        self.assertEqual(self.args(spec("Chief", command=("chief",), args=wide)), list(wide))

    def test_every_evaluator_serves_its_page(self):
        pages = FakePages()
        for args, manifests in (
            ((), None),
            (("--dashboard_port=7000",), 7000),
            (("--dashboard_port", "7000"), 7000),
            (("--dashboard_port=0",), 0),
        ):
            evaluator = spec("Evaluator", 2, command=("evaluator",), args=("--seed=1", *args))
            found = self.args(evaluator, spec("Worker"), index=1, planner=self.planner(pages=pages))
            self.assertEqual(found, ["--seed=1", "--dashboard_port=7001", LOCAL_PAGE])
            self.assertEqual(pages.asked.pop(), ("evaluator-1", manifests))
        translated = spec("Evaluator", command=("python", "-m", "trainer.task"), args=("--lr=1",))
        self.assertEqual(
            self.args(translated, planner=self.planner(pages=pages)),
            ["--learning_rate=1", "--dashboard_port=7001", LOCAL_PAGE],
        )
        wide = spec("Evaluator", command=("evaluator",), args=("--dashboard_address=0.0.0.0",))
        self.assertEqual(
            self.args(wide, planner=self.planner(pages=pages)),
            ["--dashboard_address=0.0.0.0", "--dashboard_port=7001"],
        )
        # The whole job in one process.
        alone = spec("Worker", args=("--seed=1",))
        found = self.args(alone, planner=self.planner(pages=pages))
        self.assertEqual(found, ["--seed=1", "--dashboard_port=7001", LOCAL_PAGE])
        pages.asked.clear()
        for other in ("PS", "Chief"):
            self.assertEqual(self.args(spec(other), planner=self.planner(pages=pages)), [])
        self.assertEqual(pages.asked, [])

    def test_what_is_no_port_is_left_to_the_program(self):
        for word in ("many", "65536", "-1"):
            evaluator = spec("Evaluator", command=("evaluator",), args=(f"--dashboard_port={word}",))
            found = self.args(evaluator, planner=self.planner(pages=FakePages()))
            self.assertEqual(found, [f"--dashboard_port={word}"])

    def test_no_page_where_none_is_wanted(self):
        page = ("--dashboard_port=6006", "--dashboard_address=::1", "--auth_token_file=/t")
        args = ("--seed=1", *page, "--runs", "a=/b")
        evaluator = spec("Evaluator", command=("evaluator",), args=args)
        self.assertEqual(self.args(evaluator, planner=self.planner(pages=None)), ["--seed=1"])
        alone = spec("Chief", command=("chief",), args=("--dashboard_port=6006", "--dashboard_address=::1", "--seed=1"))
        tfjob = job(alone)
        plan = self.planner(pages=None).plan(tfjob, addresses(tfjob), "Chief", 0)
        self.assertEqual(plan.main.argv[1:], ("--seed=1",))

    def test_flags_reach_the_programs_that_take_them(self):
        settings = {"flags": {"auth_token_file": "/t", "seed": "1"}, "pages": FakePages()}
        for replica_type, takes in (("PS", False), ("Chief", True), ("Worker", True), ("Evaluator", True)):
            found = self.args(spec(replica_type, 2), spec("Master"), **settings)
            self.assertEqual("--auth_token_file=/t" in found, takes, replica_type)
            self.assertIn("--seed=1", found)

    def test_chief_of_dynamic_workers_learns_its_address(self):
        tfjob = job(spec("Chief"), spec("PS"), spec("Worker"), dynamic_workers=True)
        chief = self.planner().plan(tfjob, addresses(tfjob), "Chief", 0)
        self.assertEqual(chief.main.argv[1:], ("--chief_hosts=127.0.0.1:10000",))
        self.assertEqual(self.planner().plan(tfjob, addresses(tfjob), "PS", 0).main.argv[1:], ())

    def test_working_directory(self):
        self.assertEqual(self.plan(spec("PS")).main.working_dir, "/work_dir")
        self.assertEqual(self.plan(spec("PS", working_dir=self.directory)).main.working_dir, "/work_dir")
        own = {"images": ("*=as-is",)}
        script = spec("PS", command=("sh",), working_dir=self.directory)
        self.assertEqual(self.plan(script, **own).main.working_dir, self.directory)
        script = spec("PS", command=("sh",), working_dir="/no/such")
        self.assertEqual(self.plan(script, **own).main.working_dir, "/work_dir")
        self.assertEqual(
            self.used.warnings, ["PS: workingDir: no directory /no/such here, /work_dir instead"]
        )


class EnvironmentTest(PlannerTest):
    def test_tf_config_is_of_the_main_container_alone(self):
        init = Container("fill", "busybox", ("sh", "-c", "x"))
        plan = self.plan(spec("PS", pod={"init_containers": (init,)}))
        self.assertEqual(
            plan.main.environment["TF_CONFIG"],
            '{"cluster":{"ps":["127.0.0.1:10000"],"worker":["127.0.0.1:10100"]},'
            '"task":{"type":"ps","index":0},"environment":"cloud"}',
        )
        self.assertNotIn("TF_CONFIG", plan.init[0].environment)

    def test_facts_of_the_pod(self):
        fields = (
            "metadata.name", "metadata.namespace", "status.podIP", "status.hostIP", "spec.nodeName",
            "spec.serviceAccountName", "metadata.labels['training.kubeflow.org/replica-index']",
            "metadata.labels['tier']", "metadata.annotations['note']",
        )
        variables = tuple(EnvironmentVariable(f"V{i}", field_path=field) for i, field in enumerate(fields))
        pod = {"labels": {"tier": "gold"}, "annotations": {"note": "n"}}
        environment = self.plan(spec("PS", 2, environment=variables, pod=pod), index=1).main.environment
        local, node = "127.0.0.1", socket.gethostname()
        self.assertEqual(
            [environment[f"V{i}"] for i in range(len(fields))],
            ["job-ps-1", "default", local, local, node, "default", "1", "gold", "n"],
        )

    def test_every_pod_has_a_uid_of_its_own(self):
        uid = (EnvironmentVariable("U", field_path="metadata.uid"),)
        uids = {self.plan(spec("PS", environment=uid)).main.environment["U"] for _ in range(3)}
        self.assertEqual(len(uids), 3)

    def test_limits(self):
        variable = (EnvironmentVariable("C", resource="limits.cpu"),)
        self.assertEqual(self.plan(spec("PS", environment=variable)).main.environment["C"], "8")


class InitContainersTest(PlannerTest):
    def test_volumes_and_environment_of_its_own(self):
        init = Container(
            "fill", "busybox", ("sh", "-c", "cp $(SRC) /out"), environment=env(SRC="/x"),
            mounts=(VolumeMount("v", "/out"),), working_dir="/out",
        )
        pod = {"init_containers": (init,), "volumes": (Volume("v", "emptyDir"),)}
        mounts = (VolumeMount("v", "/in"),)
        ps = spec("PS", command=("ps_server",), args=("/in/x",), mounts=mounts, pod=pod)
        plan = self.plan(ps)
        own = self.path("volumes", "ps-0", "v")
        self.assertEqual(plan.init[0].container, "fill")
        self.assertEqual(plan.init[0].argv[1:], ("-c", f"cp /x {own}"))
        self.assertEqual(plan.init[0].working_dir, own)
        self.assertEqual(plan.main.argv[1:], (f"{own}/x",))

    def test_skipped_without_command(self):
        pod = {"init_containers": (Container("fill", "busybox"),)}
        self.assertEqual(self.plan(spec("PS", pod=pod)).init, ())
        self.assertIn("init container fill: skipped", self.used.warnings[0])

    def test_missing_program(self):
        pod = {"init_containers": (Container("fill", "x", ("no-such-program",)),)}
        self.assert_refused(
            'PS: init container fill: command: no program "no-such-program" on this machine',
            spec("PS", pod=pod),
        )

    def test_runs_only_when_it_is_permitted(self):
        pod = {"init_containers": (Container("fill", "busybox:1", ("sh", "-c", "x")),)}
        self.assertEqual(self.plan(spec("PS", pod=pod), run_commands=False).init, ())
        self.assertEqual(self.used.warnings, [])
        self.write_script("mine/sh", "")
        for permission in (
            {"run_commands": True},
            {"images": ("busybox*=as-is",), "run_commands": False},
            {"images": (f"busybox*={self.path('mine')}",), "run_commands": False},
        ):
            (init,) = self.plan(spec("PS", pod=pod), **permission).init
            self.assertEqual((init.argv[1:], init.is_keelsons), (("-c", "x"), False))
        images = ("keelson=as-is", "*=role")
        plan = self.plan(spec("PS", command=("sh",), pod=pod), images=images, run_commands=False)
        self.assertEqual(plan.init, ())

    def test_variables_that_keelsons_programs_do_not_read(self):
        variables = env(
            LD_PRELOAD="/x/evil.so", CUDA_INJECTION64_PATH="/x/evil.so", PATH="/x", TZ="UTC", N="2"
        )
        ps = spec("PS", 1, command=("ps_server",), args=("--seed=$(N)",), environment=variables)
        plan = self.plan(ps, run_commands=False)
        self.assertEqual(sorted(plan.main.environment), ["TF_CONFIG", "TZ"])
        self.assertEqual(plan.main.argv[1:], ("--seed=2",))
        self.assertEqual(self.plan(ps).main.environment["LD_PRELOAD"], "/x/evil.so")
        self.write_script("mine/ps_server", support.program_script("ps_server"))
        users = self.plan(ps, images=(f"*={self.path('mine')}",), run_commands=False)
        self.assertEqual(users.main.environment["LD_PRELOAD"], "/x/evil.so")
        own = spec("PS", command=("sh",), environment=variables)
        own = self.plan(own, images=("*=as-is",), run_commands=False)
        self.assertEqual(own.main.environment["LD_PRELOAD"], "/x/evil.so")

    def test_what_is_left_out(self):
        volumes = (Volume("d", "hostPath", "/data"), Volume("e", "hostPath", "/data"), Volume("f", "emptyDir"))
        fill, wait = Container("fill", "busybox", ("sh",)), Container("wait", "keelson", ("sh",))
        tfjob = job(
            spec("PS", pod={"init_containers": (fill, wait), "volumes": volumes}),
            spec(
                "Worker",
                environment=env(A="1", TZ="UTC", B="2"),
                pod={"init_containers": (fill, Container("own", "x"))},
            ),
        )
        for images, run_commands, expected in (
            (
                (),
                False,
                "init container fill (PS, Worker); init container wait (PS); "
                "hostPath /data (PS: a directory of the run in its place); "
                "env A, B (Worker: Keelson's programs do not read it)",
            ),
            (
                ("*=as-is",),
                False,
                "hostPath /data (PS: a directory of the run in its place)",
            ),
            ((), True, ""),
        ):
            permissions = Permissions(ImageMap.parse(images, self.path("bin")), run_commands)
            self.assertEqual(permissions.left_out(tfjob), expected)

    def test_what_stands_in_the_arguments_is_not_left_out(self):
        permissions = Permissions(ImageMap.parse((), self.path("bin")), False)
        variables = env(NAME="a", OTHER="b")
        tfjob = job(spec("Worker", command=("worker",), args=("--model_dir=/m/$(NAME)",), environment=variables))
        expected = "env OTHER (Worker: Keelson's programs do not read it)"
        self.assertEqual(permissions.left_out(tfjob), expected)

    def test_hyper_parameters_are_left_out_of_keelsons_own_commands_alone(self):
        variables = env(TF_TRAIN_STEPS="7")
        permissions = Permissions(ImageMap.parse((), self.path("bin")), False)
        for command, expected in (
            (("python", "x.py"), ""),
            ((), ""),
            (("worker",), "env TF_TRAIN_STEPS (Worker: Keelson's programs do not read it)"),
        ):
            tfjob = job(spec("Worker", command=command, environment=variables))
            self.assertEqual(permissions.left_out(tfjob), expected)


class WarningsTest(PlannerTest):
    def test_each_thing_is_said_once(self):
        planner = self.planner()
        words = {"command": ("python", "x.py"), "args": ("--beta=1",)}
        for index in (0, 1):
            self.plan(spec("Worker", 2, **words), spec("PS", **words), index=index, planner=planner)
        self.assertEqual(
            planner.warnings,
            [
                "Worker: worker runs in place of the command python x.py",
                "--beta: nothing in Keelson's programs means the same, left out",
            ],
        )

    def test_address_of_the_manifests_port(self):
        port = (ContainerPort(22221, "tfjob-port"),)
        args = self.args(spec("PS", ports=port, command=("ps_server",), args=("--h=job-ps-0:22221",)))
        self.assertEqual(args, ["--h=127.0.0.1:10000"])
