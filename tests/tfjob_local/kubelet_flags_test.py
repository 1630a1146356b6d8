"""A foreign command leads to its arguments, and those to flags of Keelson's programs."""

import json
import os
import tempfile
import unittest

import support
from tfjob_local.kubelet.command_words import find_program
from tfjob_local.kubelet.flag_translation import (
    ALIASES,
    flag_value,
    has_flag,
    remove_flag,
    translate_flags,
)
from tfjob_local.kubelet.flag_values import Surroundings
from tfjob_local.kubelet.plan import PlanError
from tfjob_local.kubelet.program_flags import PROGRAMS, Flag, parse_flags, read_flags

BINARY_DIR = os.environ.get(
    "KEELSON_BINARY_DIR", os.path.join(support.REPOSITORY, "build", "release", "bin")
)

FAKE_FLAGS = {name: parse_flags(support.flag_table(name)) for name in PROGRAMS}


class CommandWordsTest(unittest.TestCase):
    def test_arguments_of_every_form(self):
        for words, name, arguments in (
            (["python", "-m", "trainer.task", "--lr=1"], "python", ["--lr=1"]),
            (["python3.11", "-u", "-W", "ignore", "/opt/x.py", "--lr", "1"], "python3.11", ["--lr", "1"]),
            (["/usr/bin/python", "-c", "import x", "--lr=1"], "python", ["--lr=1"]),
            (["/usr/local/bin/worker", "--lr=1"], "worker", ["--lr=1"]),
            (["train", "--lr=1"], "train", ["--lr=1"]),
            (["env", "A=b", "python", "x.py", "--lr=1"], "python", ["--lr=1"]),
            (["tini", "--", "worker", "--lr=1"], "worker", ["--lr=1"]),
            (["sh", "-c", "exec python x.py --lr=1"], "python", ["--lr=1"]),
            (["/bin/bash", "-ec", "cd /app && A=b python x.py --lr '1 2' 2>&1 | tee log"], "python",
             ["--lr", "1 2"]),
            (["sh", "-c", "pip install x; python a.py \\\n --lr=1 > out 2> err"], "python", ["--lr=1"]),
            (["sh", "-c", "worker --lr 1 > out 2>err --name=a#b"], "worker", ["--lr", "1", "--name=a#b"]),
            (["sh", "-c", "python prepare.py --x=1\nworker --lr=1"], "worker", ["--lr=1"]),
            (["torchrun", "--nnodes", "2", "--rdzv_backend=c10d", "./x.py", "--lr=1"], "torchrun", ["--lr=1"]),
            (["torchrun", "-m", "trainer.task", "--lr=1"], "torchrun", ["--lr=1"]),
            (["torchrun", "--nnodes=2"], "torchrun", []),
            (["python", "-m", "torch.distributed.run", "--nnodes=2", "x.py", "--lr=1"], "python", ["--lr=1"]),
            (["sh", "-c", "cd /app && exec torchrun x.py --lr=1"], "torchrun", ["--lr=1"]),
            (["sh", "-c", "ls; train --lr=1"], "train", ["--lr=1"]),
            (["bash", "/opt/run.sh", "--lr=1"], "run.sh", ["--lr=1"]),
            (["bash", "-x", "run.sh", "--lr=1"], "run.sh", ["--lr=1"]),
            (["/bin/bash", "-c", "--", "python train.py --batch_size=16"], "python", ["--batch_size=16"]),
            (["bash", "-c", "-e", "--", "worker --lr=1"], "worker", ["--lr=1"]),
            (["bash", "-eo", "pipefail", "-c", "worker --lr=1"], "worker", ["--lr=1"]),
            (["bash", "-o", "pipefail", "-c", "worker --lr=1"], "worker", ["--lr=1"]),
            (["sh", "--", "run.sh", "--lr=1"], "run.sh", ["--lr=1"]),
            (["sh", "-c"], "sh", []),
            (["sh", "-c", "echo 'unfinished"], "sh", []),
            (["sh"], "sh", []),
            ([], "", []),
        ):
            found = find_program(words, tuple(PROGRAMS))
            self.assertEqual((found.name, list(found.arguments)), (name, arguments), words)


    def test_variables_in_a_script(self):
        variables = {"BATCH": "32", "RATE": "0.1 --seed=7", "NAME": "a'b\"c;d", "NONE": "", "LINES": "a\nb"}
        for script, arguments in (
            ("worker --batch_size=$BATCH --x=${BATCH}", ["--batch_size=32", "--x=32"]),
            ('worker "--batch_size=$BATCH"', ["--batch_size=32"]),
            ("worker '--batch_size=$BATCH' \\$BATCH", ["--batch_size=$BATCH", "$BATCH"]),
            ('worker "it\'s $BATCH"', ["it's 32"]),
            ("worker --lr=$RATE", ["--lr=0.1", "--seed=7"]),
            ('worker "--lr=$RATE"', ["--lr=0.1 --seed=7"]),
            ('worker --a=$NAME "--b=$NAME"', ["--a=a'b\"c;d", "--b=a'b\"c;d"]),
            ("worker --a=${UNSET:-5} --b=${NONE:-6} --c=${BATCH:-7} --d=$NONE",
             ["--a=5", "--b=6", "--c=32", "--d="]),
            ("worker --a=$UNSET --b=$(date)", ["--a=$UNSET", "--b=$"]),
            ("worker --a=$LINES", ["--a=a", "b"]),
        ):
            found = find_program(["sh", "-c", script], tuple(PROGRAMS), variables)
            self.assertEqual(list(found.arguments), arguments, script)

    def test_arguments_of_a_script(self):
        for script, arguments in (
            ('exec python train.py "$@"', ["--lr=1", "a b"]),
            ("exec python train.py $@", ["--lr=1", "a", "b"]),
            ("python train.py $1 --name=$0", ["--lr=1", "--name=run"]),
        ):
            found = find_program(["sh", "-c", script, "run", "--lr=1", "a b"], tuple(PROGRAMS))
            self.assertEqual(list(found.arguments), arguments, script)


class ProgramFlagsTest(support.TemporaryDirectoryTest):
    def program(self, script):
        return self.write_script("program", script)

    def test_program_lists_them(self):
        kinds = (("a", "option", "INT"), ("b", "flag", ""))
        rows = [{"name": name, "kind": kind, "group": "x", "type": text} for name, kind, text in kinds]
        path = self.program(f"test $1 = --help=json && echo '{json.dumps({'flags': rows})}'")
        self.assertEqual(read_flags(path), {"a": Flag(True, "x", "INT"), "b": Flag(False, "x")})

    def test_program_that_cannot_be_started_has_none(self):
        self.assertEqual(read_flags(self.path("nothing")), {})

    def test_program_without_a_list_is_refused(self):
        for i, answer in enumerate(("Usage: worker [OPTIONS]", "[]", '{"flags": [1]}', '{"flags": [{}]}')):
            path = self.path(f"program_{i}")
            os.rename(self.program(f"echo '{answer}'"), path)
            with self.assertRaises(PlanError) as caught:
                read_flags(path)
            self.assertEqual(
                str(caught.exception),
                f"{path}: --help=json: expected a list of flags, found none; "
                "deploy/run_local.sh builds it anew",
            )

    @unittest.skipUnless(
        all(os.access(os.path.join(BINARY_DIR, name), os.X_OK) for name in PROGRAMS),
        "the four programs are not built",
    )
    def test_of_the_four_programs(self):
        """They have what the launcher knows by name, and the scripts in their place say of them."""
        real = {name: read_flags(os.path.join(BINARY_DIR, name)) for name in PROGRAMS}
        for name in PROGRAMS:
            self.assertLessEqual(FAKE_FLAGS[name].items(), real[name].items(), name)
            self.assertLessEqual(set(ALIASES), set(real[name]), name)
            self.assertEqual([a for names in ALIASES.values() for a in names if a in real[name]], [])


MEANINGLESS = ": nothing in Keelson's programs means the same, left out"


class TranslationTest(unittest.TestCase):
    def translate(self, *args, program="worker", gpus=True, data=True, **environment):
        """The words before the remarks that nothing means the same stand for these."""
        surroundings = Surroundings(lambda: gpus, lambda path: data)
        found = translate_flags(args, program, FAKE_FLAGS, surroundings, environment)
        return list(found.args), [remark.removesuffix(MEANINGLESS) for remark in found.remarks]

    def test_the_classic_command(self):
        self.assertEqual(
            self.translate("--batch_size=32", "--training_steps=1000"),
            (["--batch_size=32", "--training_steps=1000"], []),
        )

    def test_every_alias(self):
        for flag, aliases in ALIASES.items():
            for alias in (flag, *aliases):
                for written in (f"--{alias}", f"-{alias}", f"--{alias.replace('_', '-')}"):
                    with self.subTest(written):
                        self.assertEqual(self.translate(f"{written}=7"), ([f"--{flag}=7"], []))
                        self.assertEqual(self.translate(written, "7"), ([f"--{flag}=7"], []))

    def test_unknown_flags_are_dropped_with_their_values(self):
        self.assertEqual(
            self.translate("--beta", "0.9", "--log_dir", "-1", "--fake", "--gamma=1", "word", "--seed"),
            (["--model_dir=-1"], ["--beta", "--fake", "--gamma", "word", "--seed"]),
        )

    def test_flags_of_other_programs_are_no_loss(self):
        translation = self.translate("--device=cpu", "--lr=1", program="ps_server")
        self.assertEqual(translation, (["--learning_rate=1"], []))

    def test_flags_without_value(self):
        translation = self.translate("--chief_trains", "--seed=1", program="chief")
        self.assertEqual(translation, (["--chief_trains", "--seed=1"], []))

    def test_the_cluster_comes_from_tf_config(self):
        hosts = ("--job_name=worker", "--task_index", "0", "--ps_hosts=a:1")
        self.assertEqual(self.translate(*hosts), ([], ["--job_name", "--task_index", "--ps_hosts"]))

    def test_what_serves_other_runs_is_not_of_a_job(self):
        translation = self.translate("--runs=3", "--serve_only", "--seed=1", program="evaluator")
        self.assertEqual(translation, (["--seed=1"], ["--runs", "--serve_only"]))

    def test_own_name_wins_then_the_tables_order_then_the_later_one(self):
        self.assertEqual(self.translate("--model_dir=a", "--log_dir=b"), (["--model_dir=a"], ["--log_dir"]))
        self.assertEqual(self.translate("--log_dir=b", "--model_dir=a"), (["--model_dir=a"], ["--log_dir"]))
        self.assertEqual(self.translate("--log_dir=b", "--job-dir=a"), (["--model_dir=a"], ["--log_dir"]))
        self.assertEqual(self.translate("--lr=1", "--lr=2"), (["--learning_rate=2"], []))

    def test_values_that_mean_the_same(self):
        for flag, value in (
            ("--device=gpu", "--device=cuda"),
            ("--device=GPU", "--device=cuda"),
            ("--device=/gpu:1", "--device=cuda:1"),
            ("--device=/device:GPU:0", "--device=cuda:0"),
            ("--device=/cpu:0", "--device=cpu"),
            ("--device=cuda:0,1", "--device=cuda:0,1"),
            ("--device=auto", "--device=auto"),
            ("--precision=bf16", "--precision=bfloat16"),
            ("--precision=fp32", "--precision=float32"),
            ("--max_steps=1e2", "--training_steps=100"),
            ("--batch_size=64.0", "--batch_size=64"),
            ("--lr=1e-3", "--learning_rate=1e-3"),
            ("--config=my.textproto", "--config=my.textproto"),
            ("--data_dir=file:///data", "--data_dir=/data"),
        ):
            self.assertEqual(self.translate(flag), ([value], []), flag)

    def test_values_that_mean_nothing(self):
        device = "expected cpu, gpu, cuda, cuda:N or auto"
        directory = "expected a directory of this machine"
        config = "expected a TrainConfig as a text proto (.textproto, .pbtxt)"
        for flag, value, expected in (
            ("--device", "tpu", device),
            ("--device", "/job:worker/gpu:0", device),
            ("--precision", "fp16", "expected float32, tf32 or bfloat16"),
            ("--config", "config.yaml", config),
            ("--data_dir", "gs://bucket/mnist", directory),
            ("--max_steps", "-1", "expected a whole number >= 1"),
            ("--steps", "$STEPS", "expected a whole number >= 1"),
            ("--batch_size", "1.5", "expected a whole number >= 1"),
            ("--batch_size", "1e999", "expected a whole number >= 1"),
            ("--seed", "-1", "expected a whole number >= 0"),
            ("--lr", "0", "expected a number > 0"),
            ("--lr", "nan", "expected a number > 0"),
            ("--lr", "fast", "expected a number > 0"),
            ("--metrics_port", "http", "expected a whole number"),
        ):
            remark = f'{flag}: {expected}, found "{value}"; left out'
            self.assertEqual(self.translate(f"{flag}={value}"), ([], [remark]), flag)

    def test_epochs_count_where_no_steps_are_said(self):
        self.assertEqual(self.translate("--epochs=3"), (["--epochs=3"], []))
        self.assertEqual(self.translate("--num-epochs", "3"), (["--epochs=3"], []))
        for given in (("--epochs=3", "--steps=10"), ("--steps=10", "--epochs=3")):
            found = self.translate(*given)
            self.assertEqual(found, (["--training_steps=10"], ["--epochs: expected none beside --steps; left out"]))

    def test_a_gpu_that_is_not_here(self):
        remark = '--device: expected cpu, as this machine has no GPU, found "gpu"; left out'
        self.assertEqual(self.translate("--device=gpu", gpus=False), ([], [remark]))

    def test_a_directory_without_data(self):
        remark = (
            '--data_dir: expected a directory with IDX files (*-images-idx3-ubyte), found "/none"; left out'
        )
        self.assertEqual(self.translate("--data_dir=/none", data=False), ([], [remark]))
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "t10k-images-idx3-ubyte.gz"), "wb"):
                pass
            flag = f"--data_dir={directory}"
            self.assertEqual(self.translate(flag, data=False), ([flag], []))

    def test_choices_of_a_flag(self):
        flags = {"worker": {"writer": Flag(True, "x", "TEXT:{servers,chief}")}}
        surroundings = Surroundings(lambda: False, lambda path: False)
        found = translate_flags(["--writer=me"], "worker", flags, surroundings)
        self.assertEqual(found.remarks, ('--writer: expected servers,chief, found "me"; left out',))
        found = translate_flags(["--writer=chief"], "worker", flags, surroundings)
        self.assertEqual(found.args, ("--writer=chief",))

    def test_hyper_parameters_from_the_environment(self):
        variables = {
            "TF_TRAIN_STEPS": "200",
            "TF_BATCH_SIZE": "100",
            "TF_LEARNING_RATE": "0.01",
            "TF_MODEL_DIR": "/model",
            "TF_EXPORT_DIR": "/export",
            "TF_CONFIG": "{}",
            "BATCH_SIZE": "7",
        }
        args = ["--training_steps=200", "--batch_size=100", "--learning_rate=0.01"]
        remarks = [
            "env TF_TRAIN_STEPS is taken as --training_steps=200",
            "env TF_BATCH_SIZE is taken as --batch_size=100",
            "env TF_LEARNING_RATE is taken as --learning_rate=0.01",
        ]
        self.assertEqual(self.translate(**variables), ([*args, "--model_dir=/model"], remarks))

    def test_a_flag_outranks_a_variable(self):
        found = self.translate("--batch_size=8", TF_BATCH_SIZE="100", TF_STEPS="many")
        remark = 'env TF_STEPS: expected a whole number >= 1, found "many"; left out'
        self.assertEqual(found, (["--batch_size=8"], [remark]))

    def test_no_name_has_two_meanings(self):
        names = [name for flag, aliases in ALIASES.items() for name in (flag, *aliases)]
        self.assertEqual(len(names), len(set(names)))


class FlagsTest(unittest.TestCase):
    ARGS = ["--a=1", "--b", "2", "-c=3", "--verbose", "--b_more=4", "plain"]

    def test_remove_flag(self):
        self.assertEqual(remove_flag(self.ARGS, "b"), ["--a=1", "-c=3", "--verbose", "--b_more=4", "plain"])
        self.assertEqual(remove_flag(self.ARGS, "a"), self.ARGS[1:])
        self.assertEqual(remove_flag(self.ARGS, "c"), self.ARGS[:3] + self.ARGS[4:])
        self.assertEqual(remove_flag(["--verbose", "--a=1"], "verbose"), ["--a=1"])

    def test_has_flag(self):
        self.assertTrue(has_flag(["--a=1"], "a"))
        self.assertTrue(has_flag(["--a", "1"], "a"))
        self.assertFalse(has_flag(["--ab=1", "a"], "a"))

    def test_flag_value(self):
        self.assertEqual(flag_value(self.ARGS, "a"), "1")
        self.assertEqual(flag_value(self.ARGS, "b"), "2")
        self.assertEqual(flag_value(["--b"], "b"), "")
        self.assertIsNone(flag_value(self.ARGS, "plain"))
