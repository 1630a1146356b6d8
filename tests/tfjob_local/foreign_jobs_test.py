"""Jobs that others wrote for TensorFlow, in the forms in which they are published: what runs for them here."""

import os
import re
import unittest

import support
from tfjob_local.kubelet.program_flags import PROGRAMS

HEAD = "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: digits}\nspec:\n"
LEFT_OUT = "nothing in Keelson's programs means the same, left out"

# Parameter server benchmarks with flags of the names that Keelson's have, and other values.
GPU_BENCHMARK = """\
  cleanPodPolicy: All
  tfReplicaSpecs:
    PS:
      replicas: 1
      template: &benchmark
        spec:
          restartPolicy: OnFailure
          containers:
            - name: tensorflow
              image: example.org/benchmarks:gpu
              workingDir: /opt/benchmarks
              command: [python, benchmark.py, --batch_size=32, --model=resnet50, --device=gpu,
                        --variable_update=parameter_server, --data_dir=gs://bucket/images]
    Worker:
      replicas: 2
      template: *benchmark
"""

# A shell with --, and hyper-parameters as variables of that shell.
SHELL_COMMAND = """\
  runPolicy: {cleanPodPolicy: Running}
  tfReplicaSpecs:
    PS: &replica
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/digits:1
              command: [/bin/bash, -c, --]
              args: ["cd /app && python train.py --batch_size=${BATCH:-64} --train_steps=$STEPS > out.log 2>&1"]
              env: [{name: BATCH, value: "16"}, {name: STEPS, value: "40"}]
    Worker:
      <<: *replica
      replicas: 2
"""

# A trainer that knows its hyper-parameters from the environment.
ENVIRONMENT = """\
apiVersion: template.openshift.io/v1
kind: Template
parameters:
- {name: TRAIN_STEPS, value: "1000"}
- {name: BATCH, value: "100"}
objects:
- apiVersion: kubeflow.org/v1beta2
  kind: TFJob
  metadata: {name: digits}
  spec:
    cleanPodPolicy: Running
    tfReplicaSpecs:
      Ps: &replica
        replicas: 1
        template:
          spec:
            containers:
            - name: tensorflow
              image: example.org/digits:1
              command: [python, /opt/model.py]
              env:
              - {name: TF_TRAIN_STEPS, value: "${TRAIN_STEPS}"}
              - {name: TF_BATCH_SIZE, value: "${BATCH}"}
              - {name: TF_EXPORT_DIR, value: /export}
      Worker: *replica
"""

# Every worker has the whole model, and no server is needed.
MIRRORED = """\
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/mirrored:1
              command: [python, multi_worker.py, --config=config.yaml, --precision=fp16, --max_steps=1e2]
"""


class ForeignJobsTest(support.LauncherTest):
    def dry_run(self, text, *flags):
        """Exit code; replica name -> arguments; warnings."""
        path = self.write("job.yaml", text if "kind:" in text else HEAD + text)
        command = [path, f"--bin_dir={self.path('bin')}", f"--run_dir={self.path('run')}", "--dry_run", *flags]
        code, output, errors = self.ask(*command)
        arguments = {}
        for section in re.split(r"\n\n", output):
            name = re.match(r"([a-z]+-\d+)  \(", section)
            if name:
                arguments[name[1]] = re.findall(r"^  argument   --(.*)$", section, re.MULTILINE)
        self.errors = errors
        return code, arguments, re.findall(r"^warning: (.*)$", output, re.MULTILINE)

    def own_flags(self, arguments):
        """Without those that every job gets here."""
        given = ("model_dir=", "job_token_file=", "compute_threads=", "dashboard_")
        return [argument for argument in arguments if not argument.startswith(given)]

    def test_values_of_the_same_flags(self):
        code, arguments, warnings = self.dry_run(GPU_BENCHMARK, "--gpus=none")
        self.assertEqual(code, 0, self.errors)
        for name in ("ps-0", "worker-0", "worker-1"):
            self.assertEqual(self.own_flags(arguments[name]), ["batch_size=32"])
        for line in (
            '--device: expected cpu, as this machine has no GPU, found "gpu"; left out',
            '--data_dir: expected a directory of this machine, found "gs://bucket/images"; left out',
            f"--model: {LEFT_OUT}",
        ):
            self.assertIn(line, warnings)
        _, arguments, _ = self.dry_run(GPU_BENCHMARK, "--gpus=0")
        self.assertEqual(self.own_flags(arguments["worker-1"]), ["batch_size=32", "device=cuda"])
        self.assertEqual(self.own_flags(arguments["ps-0"]), ["batch_size=32"])

    def test_a_shells_command(self):
        code, arguments, _ = self.dry_run(SHELL_COMMAND)
        self.assertEqual(code, 0, self.errors)
        for name in ("ps-0", "worker-0", "worker-1"):
            self.assertEqual(self.own_flags(arguments[name]), ["batch_size=16", "training_steps=40"])

    def test_hyper_parameters_of_the_environment(self):
        code, arguments, warnings = self.dry_run(ENVIRONMENT, "--param=TRAIN_STEPS=200")
        self.assertEqual(code, 0, self.errors)
        for name in ("ps-0", "worker-0"):
            self.assertEqual(self.own_flags(arguments[name]), ["training_steps=200", "batch_size=100"])
        self.assertIn("env TF_TRAIN_STEPS is taken as --training_steps=200", warnings)
        left_out = [line for line in warnings if "left out without --run_commands" in line]
        self.assertEqual(
            left_out,
            [
                "left out without --run_commands: env TF_EXPORT_DIR (PS, Worker: Keelson's programs do not read it)"
            ],
        )

    def test_a_job_without_servers(self):
        code, arguments, _ = self.dry_run(MIRRORED)
        self.assertEqual(code, 0, self.errors)
        self.assertEqual(sorted(arguments), ["worker-0", "worker-1"])
        code, arguments, warnings = self.dry_run(MIRRORED, "--ps=2")
        self.assertEqual(code, 0, self.errors)
        self.assertEqual(sorted(arguments), ["ps-0", "ps-1", "worker-0", "worker-1"])
        for name in arguments:
            self.assertEqual(self.own_flags(arguments[name]), ["training_steps=100"])
        for line in (
            "spec.tfReplicaSpecs.PS: not in the manifest; 2 with the template of Worker",
            '--config: expected a TrainConfig as a text proto (.textproto, .pbtxt), found "config.yaml"; left out',
            '--precision: expected float32, tf32 or bfloat16, found "fp16"; left out',
        ):
            self.assertIn(line, warnings)


BINARY_DIR = os.environ.get("KEELSON_BINARY_DIR", os.path.join(support.REPOSITORY, "build", "release", "bin"))


@unittest.skipUnless(
    all(os.access(os.path.join(BINARY_DIR, name), os.X_OK) for name in PROGRAMS),
    "the four programs are not built",
)
class RealProgramsTest(support.LauncherTest):
    """The programs take what the launcher made of the flags."""

    def test_they_train_to_the_end(self):
        for number, (text, step, flags) in enumerate(
            (
                (HEAD + GPU_BENCHMARK, 20, ("--gpus=none", "--training_steps=20")),
                (HEAD + SHELL_COMMAND, 40, ()),
                (ENVIRONMENT, 20, ("--param=TRAIN_STEPS=20", "--param=BATCH=10")),
                (HEAD + MIRRORED, 100, ("--ps=1",)),
            )
        ):
            own = (f"--bin_dir={BINARY_DIR}", f"--run_dir={self.path(f'run-{number}')}", "--dashboard_port=none")
            code, output = self.run_job(text, *flags, *own)
            self.assertEqual(code, 0, output)
            self.assertIn(f"job digits succeeded, final step {step}", output)
