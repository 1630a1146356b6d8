"""Feeds check_layers trees with one fault each."""

import os

from checks_testing import TOOLS, TreeTest, load

check_layers = load("check_layers")

with open(os.path.join(os.path.dirname(TOOLS), "ARCHITECTURE.md"), encoding="utf-8") as _drawing:
    ORDER = check_layers.Order(_drawing.read())


class CheckLayersTest(TreeTest):
    def violations(self):
        return [str(v) for v in check_layers.LayerChecker(self.root, ORDER).check()]

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
            '#include <vector>\n\n#include "core/device/device.h"\n',
            "core/tensor/tensor.h:3: core/tensor may not include core/device, which is not below it: "
            "core/device/device.h",
        )

    def test_every_folder_may_include_what_is_below_it_and_nothing_else(self):
        targets = sorted(ORDER.drawn)
        headers = [f"{t}/b.h" if t != "proto" else "keelson/v1/b.pb.h" for t in targets]
        text = "".join(f'#include "{h}"\n' for h in headers)
        for folder in targets:
            allowed = (folder, *ORDER.below(folder))
            path = f"{folder}/a.h"
            expected = [
                f"{path}:{line}: {folder} may not include {target}, which is not below it: {header}"
                for line, (target, header) in enumerate(zip(targets, headers), start=1)
                if target not in allowed
            ]
            self.assertEqual(self.check(path, text), expected)

    def test_production_code_includes_no_apparatus(self):
        apparatus = '#include "testing/b.h"\n#include "tests/b.h"\n#include "bench/b.h"\n'
        for folder in ORDER.drawn:
            self.assertEqual(len(self.check(f"{folder}/a.h", apparatus)), 3, folder)
        everything = "".join(f'#include "{folder}/b.h"\n' for folder in ORDER.drawn)
        for folder in ("testing", "tests/e2e", "bench/gpu"):
            self.assert_clean(f"{folder}/a.h", everything)

    def test_core_never_includes_a_role(self):
        for role in ("ps_server/service", "worker", "chief/servers", "evaluator", "dashboard", "cli"):
            for path in ("core/client/a.cc", "core/client/a_test.cc", "core/client/a_testing.h"):
                self.assertEqual(len(self.check(path, f'#include "{role}/b.h"\n')), 1)

    def test_relative_include_is_seen_through(self):
        self.write("core/device/device.h", "")
        self.assert_found(
            "core/tensor/tensor.h",
            '#include "../device/device.h"\n',
            "core/tensor/tensor.h:1: core/tensor may not include core/device, which is not below it: "
            "core/device/device.h",
        )

    def test_a_folder_without_a_place_of_its_own_belongs_to_the_one_around_it(self):
        self.assert_clean("core/device/cuda/emulation/a.cc", '#include "core/device/cuda/kernels/device.h"\n')
        self.assertEqual(len(self.check("core/device/cuda/emulation/a.cc", '#include "core/device/cpu/b.h"\n')), 1)

    def test_rooms_of_a_role_are_ordered(self):
        text = '#include "chief/reporting/reporter.h"\n'
        self.assert_clean("chief/lifecycle/a.cc", text)
        self.assert_found(
            "chief/servers/a.cc",
            text,
            "chief/servers/a.cc:1: chief/servers may not include chief/reporting, which is not below it: "
            "chief/reporting/reporter.h",
        )

    def test_a_test_sees_testing_its_own_role_and_what_core_lists_further_down(self):
        text = '#include "testing/tiny_model.h"\n#include "chief/reporting/reporter.h"\n#include "core/scoring/a.h"\n'
        for name in ("a_test.cc", "a_testing.h", "a_testing.cc", "fake_a.h"):
            self.assert_clean(f"chief/servers/{name}", text)
        for header in ("worker/worker.h", "tests/support/a.h", "programs/a.h", "dashboard/runs/run.h"):
            self.assertEqual(len(self.check("chief/servers/a_test.cc", f'#include "{header}"\n')), 1, header)
        self.assertEqual(len(self.check("core/optim/a_test.cc", '#include "core/model/model.h"\n')), 1)

    def test_apparatus_includes_one_another_in_one_direction_only(self):
        self.write("bench/a.h", '#include "tests/support/b.h"\n')
        self.assertEqual(self.violations(), [])
        self.write("tests/c.h", '\n#include "bench/d.h"\n')
        rules = self.violations()
        self.assertEqual(len(rules), 2)
        self.assertIn("bench/a.h:1: bench and tests include each other", rules[0])
        self.assertIn("tests/c.h:2: tests and bench include each other", rules[1])

    def test_only_programs_composes_several_roles(self):
        text = '#include "chief/lifecycle/chief.h"\n'
        for name in ("worker.h", "worker_test.cc", "domain.cc", "main.cc", "single_process_main.cc"):
            path = f"worker/{name}"
            rule = "worker may not include chief/lifecycle, which is not below it"
            self.assert_found(path, text, f"{path}:1: {rule}: chief/lifecycle/chief.h")
        self.assert_clean("programs/worker_main.cc", text)
        self.assert_clean("programs/single_process.h", text)

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
                "chief/service/chief_grpc_service.cc",
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
        for path in ("programs/keelson_ckpt_main.cc", "programs/keelson_ctl_main.cc", "cli/ctl.cc"):
            rule = "cli may not include chief/lifecycle, which is not below it"
            found = f"{path}:1: {rule}: chief/lifecycle/chief.h"
            self.assert_found(path, '#include "chief/lifecycle/chief.h"\n', found)
        self.assertEqual(len(self.check("programs/chief_main.cc", '#include "cli/ctl.h"\n')), 1)
        self.assert_clean("cli/ctl.cc", '#include "core/client/services/chief_service.h"\n')

    def test_libzip_stays_behind_npz(self):
        self.assert_clean("core/tensor_files/npz.cc", "#include <zip.h>\n")
        self.assert_clean("core/tensor_files/zip_status_test.cc", "#include <zip.h>\n")
        self.assertEqual(len(self.check("cli/ckpt_export.cc", "#include <zip.h>\n")), 1)

    def test_httplib_stays_behind_the_exchange(self):
        self.assert_clean("core/http/exchange.cc", "#include <httplib.h>\n")
        for path in (
            "core/http/server.cc",
            "core/startup/role_program.cc",
            "dashboard/api/api.cc",
            "programs/ps_server_main.cc",
        ):
            self.assertEqual(len(self.check(path, "#include <httplib.h>\n")), 1, path)

    def test_bytes_and_devices_know_no_protos(self):
        for folder in ("core/base", "core/http", "core/metrics", "core/wire", "core/device"):
            self.assert_found(
                f"{folder}/a.h",
                '#include "keelson/v1/event.pb.h"\n',
                f"{folder}/a.h:1: {folder} may not include proto, which is not below it: keelson/v1/event.pb.h",
            )
        for folder in ("core/tensor", "core/optim"):
            self.assert_clean(f"{folder}/a.h", '#include "keelson/v1/event.pb.h"\n')

    def test_own_locks(self):
        for code in ("absl::Mutex mu;", "std::mutex mu;", "std::shared_mutex m;", "std::condition_variable c;"):
            found = self.check("worker/a.cc", f"\n  {code}\n")
            self.assertEqual(len(found), 1, code)
            self.assertIn("worker/a.cc:2: locks come from core/base/mutex.h", found[0])
            self.assert_clean("core/base/mutex.h", f"{code}\n")
        self.assertEqual(len(self.check("worker/a.cc", '#include "absl/synchronization/mutex.h"\n')), 1)
        self.assert_clean("programs/worker_main.cc", '#include "absl/synchronization/mutex.h"\n')
        self.assertEqual(len(self.check("worker/a_main.cc", '#include "absl/synchronization/mutex.h"\n')), 1)

    def test_comments_and_strings_are_no_code(self):
        self.assert_clean("worker/a.cc", '// Not absl::Mutex.\nLog("std::mutex");\n')

    def test_folder_without_a_place(self):
        for path, folder in (("core/misc/a.h", "core/misc"), ("plugins/a.cc", "plugins"), ("a.cc", ".")):
            rule = "the folder has no place in the picture of ARCHITECTURE.md"
            self.assert_found(path, "", f"{path}:1: {rule}: {folder}")

    def test_build_trees_are_left_out(self):
        for path in ("build/release/a.cc", "runs/x/a.h", ".git/a.h"):
            self.assert_clean(path, "std::mutex m;\n")

    def draw(self, *lines):
        picture = "\n".join(lines)
        self.write("ARCHITECTURE.md", f"# A\n\n{check_layers.PICTURE_MARK}\n```\n{picture}\n```\n")

    def test_program(self):
        self.write("core/base/a.h", "")
        self.draw("roles", "  worker", "", "foundations", "  core/base")
        good = self.run_program("check_layers")
        self.assertEqual((good.returncode, good.stdout), (0, "check_layers: 1 files, 0 violations\n"))
        self.write("core/base/b.h", '#include "worker/worker.h"\n')
        bad = self.run_program("check_layers")
        self.assertEqual(bad.returncode, 1)
        self.assertIn("core/base/b.h:1: core/base may not include worker, which is not below it", bad.stdout)
        self.assertEqual(self.run_program("check_layers", "--unknown").returncode, 2)

    def test_picture_has_the_edges_of_production_code_and_no_others(self):
        self.write("core/http/a.h", '#include "core/base/b.h"\n')
        self.write("core/http/a_test.cc", '#include "core/wire/b.h"\n')
        self.write("core/optim/a.h", '#include "core/base/b.h"\n')
        self.write("core/checkpoint/a.h", '#include "core/optim/a.h"\n#include "core/base/b.h"\n')
        lines = ["top", "  core/checkpoint → core/optim", "  core/optim → core/base", "  core/http → core/base"]
        foundations = ["foundations", "  core/wire", "  core/base"]
        self.draw(*lines, *foundations)
        self.assertEqual(self.run_program("check_layers").stdout, "check_layers: 4 files, 0 violations\n")
        shows = "the picture shows an edge that"
        for i, line, found in (
            (2, "  core/optim", "core/optim/a.h:1: core/optim may not include core/base, which is not below it"),
            (3, "  core/http → core/base  core/wire", f"8: {shows} no include has: core/http → core/wire"),
            (1, f"{lines[1]}  core/base", f"6: {shows} others imply: core/checkpoint → core/base"),
            (
                3,
                f"{lines[3]}  core/optim",
                f"8: {shows} does not lead to a line further down: core/http → core/optim",
            ),
        ):
            self.draw(*lines[:i], line, *lines[i + 1 :], *foundations)
            bad = self.run_program("check_layers")
            self.assertEqual(bad.returncode, 1)
            self.assertIn(found, bad.stdout)

    def test_missing_picture(self):
        self.write("core/base/a.h", "")
        for text in (None, "# A\n"):
            if text:
                self.write("ARCHITECTURE.md", text)
            bad = self.run_program("check_layers")
            self.assertEqual(bad.returncode, 1)
            self.assertIn("ARCHITECTURE.md:1: the picture is missing", bad.stdout)
