"""Feeds check_layers trees with one fault each."""

import importlib.machinery
import importlib.util
import os
import subprocess
import tempfile
import unittest

_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_layers")


def _load():
    loader = importlib.machinery.SourceFileLoader("check_layers", _PATH)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_layers", loader))
    loader.exec_module(module)
    return module


check_layers = _load()


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = temporary.name

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def violations(self):
        return [str(v) for v in check_layers.LayerChecker(self.root).check()]

    def check(self, path, text):
        """The violations of a tree with this one file."""
        self.write(path, text)
        found = self.violations()
        os.remove(os.path.join(self.root, path))
        return found

    def assert_clean(self, path, text):
        self.assertEqual(self.check(path, text), [])

    def assert_found(self, path, text, expected):
        self.assertEqual(self.check(path, text), [expected])

    def test_downward_and_own_includes(self):
        self.assert_clean(
            "core/model/dense.cc",
            '#include "core/model/dense.h"\n#include <vector>\n#include "absl/status/status.h"\n'
            '#include "core/base/log.h"\n#include "core/tensor/tensor.h"\n#include "core/device/device.h"\n'
            '#include "keelson/v1/train_config.pb.h"\n',
        )
        self.assert_clean("tests/e2e/job_test.cc", '#include "worker/worker.h"\n#include "chief/lifecycle/chief.h"\n')

    def test_upward_include_with_its_line(self):
        self.assert_found(
            "core/tensor/tensor.h",
            "#include <vector>\n\n#include \"core/device/device.h\"\n",
            "core/tensor/tensor.h:3: core/tensor may not include core/device, which comes after it: "
            "core/device/device.h",
        )

    def test_every_step_is_above_the_one_before(self):
        folders = [step[0] for step in check_layers.STEPS]
        for lower, upper in zip(folders, folders[1:]):
            self.assertEqual(len(self.check(f"{lower}/a.h", f'#include "{upper}/b.h"\n')), 1, (lower, upper))
            self.assert_clean(f"{upper}/a.h", f'#include "{lower}/b.h"\n')

    def test_core_never_includes_a_role(self):
        for role in check_layers.ROLES:
            self.assertEqual(len(self.check("core/client/a.cc", f'#include "{role}/b.h"\n')), 1)

    def test_relative_include_is_seen_through(self):
        self.write("core/device/device.h", "")
        self.assert_found(
            "core/tensor/tensor.h",
            '#include "../device/device.h"\n',
            "core/tensor/tensor.h:1: core/tensor may not include core/device, which comes after it: "
            "core/device/device.h",
        )

    def test_sub_folders_belong_to_their_folder(self):
        self.assert_clean("core/device/cpu/a.cc", '#include "core/device/device.h"\n')
        self.assertEqual(len(self.check("core/device/cpu/a.cc", '#include "core/model/layers/layer.h"\n')), 1)

    def test_neighbours_in_one_direction_only(self):
        self.write("core/checkpoint/a.h", '#include "core/cluster/b.h"\n')
        self.assertEqual(self.violations(), [])
        self.write("core/cluster/c.h", '\n#include "core/checkpoint/d.h"\n')
        rules = self.violations()
        self.assertEqual(len(rules), 2)
        self.assertIn("core/checkpoint/a.h:1: core/checkpoint and core/cluster include each other", rules[0])
        self.assertIn("core/cluster/c.h:2: core/cluster and core/checkpoint include each other", rules[1])

    def test_roles_keep_apart_but_for_mains(self):
        text = '#include "chief/lifecycle/chief.h"\n'
        self.assert_found(
            "worker/worker.h", text, "worker/worker.h:1: the role worker may not include the role chief: chief/lifecycle/chief.h"
        )
        self.assertEqual(len(self.check("worker/worker_test.cc", text)), 1)
        self.assertEqual(len(self.check("worker/domain.cc", text)), 1)
        self.assert_clean("programs/worker_main.cc", text)
        self.assert_clean("worker/single_process_main.cc", text)

    def test_grpc_stays_at_the_edge(self):
        for text in ("#include <grpcpp/server.h>\n", '#include "keelson/v1/chief_service.grpc.pb.h"\n'):
            for path in (
                "chief/coordination/coordinator.h",
                "core/client/services/parameter_client.h",
                "core/cluster/a.cc",
                "worker/a_test.cc",
            ):
                self.assertEqual(len(self.check(path, text)), 1, path)
            for path in (
                "core/rpc/channel.cc",
                "core/client/grpc_chief_client.h",
                "chief/chief_service.cc",
                "programs/chief_main.cc",
                "tests/integration/a_test.cc",
                "bench/ps_bench.cc",
            ):
                self.assert_clean(path, text)

    def test_cuda_and_onednn_stay_behind_the_device(self):
        for header in ("cuda_runtime.h", "cublas_v2.h", "cub/cub.cuh", "cuda/std/span"):
            self.assertEqual(len(self.check("core/device/device.cc", f"#include <{header}>\n")), 1, header)
            self.assertEqual(len(self.check("core/device/cpu/a.cc", f"#include <{header}>\n")), 1, header)
            self.assert_clean("core/device/cuda/kernels.cu", f"#include <{header}>\n")
        for header in ("oneapi/dnnl/dnnl.hpp", "dnnl.h"):
            self.assertEqual(len(self.check("core/model/conv.cc", f"#include <{header}>\n")), 1, header)
            self.assert_clean("core/device/cpu/conv.cc", f"#include <{header}>\n")

    def test_cli_includes_no_role_not_even_in_a_main(self):
        for path in ("programs/keelson_ckpt_main.cc", "cli/ctl.cc"):
            self.assert_found(path, '#include "chief/lifecycle/chief.h"\n', f"{path}:1: cli may not include the role chief: chief/lifecycle/chief.h")
        self.assertEqual(len(self.check("programs/chief_main.cc", '#include "cli/ctl.h"\n')), 1)
        self.assert_clean("cli/ctl.cc", '#include "core/client/services/chief_service.h"\n')

    def test_libzip_stays_behind_npz(self):
        self.assert_clean("cli/npz.cc", "#include <zip.h>\n")
        self.assertEqual(len(self.check("cli/ckpt_export.cc", "#include <zip.h>\n")), 1)

    def test_httplib_stays_behind_the_exchange(self):
        self.assert_clean("core/http/exchange.cc", "#include <httplib.h>\n")
        for path in ("core/http/server.cc", "core/startup/role_program.cc", "dashboard/api/api.cc", "programs/ps_server_main.cc"):
            self.assertEqual(len(self.check(path, "#include <httplib.h>\n")), 1, path)

    def test_tensors_know_no_protos(self):
        for folder in ("core/base", "core/http", "core/metrics", "core/tensor", "core/device"):
            self.assert_found(
                f"{folder}/a.h",
                '#include "keelson/v1/event.pb.h"\n',
                f"{folder}/a.h:1: {folder} knows no protos: keelson/v1/event.pb.h",
            )
        self.assert_clean("core/optim/a.h", '#include "keelson/v1/event.pb.h"\n')

    def test_own_locks(self):
        for code in ("absl::Mutex mu;", "std::mutex mu;", "std::shared_mutex m;", "std::condition_variable c;"):
            found = self.check("worker/a.cc", f"\n  {code}\n")
            self.assertEqual(len(found), 1, code)
            self.assertIn("worker/a.cc:2: locks come from core/base/mutex.h", found[0])
            self.assert_clean("core/base/mutex.h", f"{code}\n")
        self.assertEqual(len(self.check("worker/a.cc", '#include "absl/synchronization/mutex.h"\n')), 1)
        self.assert_clean("programs/worker_main.cc", '#include "absl/synchronization/mutex.h"\n')

    def test_comments_and_strings_are_no_code(self):
        self.assert_clean("worker/a.cc", '// Not absl::Mutex.\nLog("std::mutex");\n')

    def test_folder_without_a_place(self):
        for path, folder in (("core/misc/a.h", "core/misc"), ("plugins/a.cc", "plugins"), ("a.cc", ".")):
            rule = "the folder has no place in the order of tools/check_layers"
            self.assert_found(path, "", f"{path}:1: {rule}: {folder}")

    def test_build_trees_are_left_out(self):
        for path in ("build/release/a.cc", "runs/x/a.h", ".git/a.h"):
            self.assert_clean(path, "std::mutex m;\n")

    def test_program(self):
        def run():
            return subprocess.run([_PATH, "--root", self.root], capture_output=True, text=True, check=False)

        self.write("core/base/a.h", "")
        good = run()
        self.assertEqual((good.returncode, good.stdout), (0, "check_layers: 1 files, 0 violations\n"))
        self.write("core/base/b.h", '#include "worker/worker.h"\n')
        bad = run()
        self.assertEqual(bad.returncode, 1)
        self.assertIn("core/base/b.h:1: core/base may not include worker, which comes after it", bad.stdout)


if __name__ == "__main__":
    unittest.main()
