"""What the manifests have in common is what tools/render_manifests puts there, and the rest is left alone."""

import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

from support import REPOSITORY, is_of_scripts, manifest_paths, roles_of

_LOADER = SourceFileLoader("render_manifests", str(REPOSITORY / "tools" / "render_manifests"))
_SPEC = spec_from_loader(_LOADER.name, _LOADER)
assert _SPEC is not None
render_manifests = module_from_spec(_SPEC)
_LOADER.exec_module(render_manifests)


def read(path: str) -> str:
    return (REPOSITORY / path).read_text(encoding="utf-8")


class RenderedManifests(unittest.TestCase):
    maxDiff = None

    def test_are_all_that_have_pods_of_a_job(self) -> None:
        self.assertEqual(sorted(render_manifests.MANIFESTS), sorted(p for p in manifest_paths() if roles_of(p)))

    def test_are_up_to_date(self) -> None:
        for path in render_manifests.MANIFESTS:
            with self.subTest(path, mend="tools/render_manifests"):
                self.assertEqual(read(path), render_manifests.renewed(path, read(path)))

    def test_change_in_a_rendered_part_is_undone(self) -> None:
        for path in render_manifests.MANIFESTS:
            of_config = ("batch_size: ", "mountPath: /etc/keelson")
            of_script = ("command: [python3, /opt/keelson/examples/", "resource: limits.cpu")
            own = of_script if is_of_scripts(path) else of_config
            own += ("--config=script",) if path == "deploy/tfjob/pytorch_mnist.yaml" else ()
            own += () if path == "deploy/pytorchjob/pytorch_mnist.yaml" else ("--model_dir=/model",)
            for line in ("[ReadWriteMany]  #", *own):
                with self.subTest(path, line=line):
                    changed = read(path).replace(line, line + "x", 1)
                    self.assertNotEqual(changed, read(path))
                    self.assertEqual(render_manifests.renewed(path, changed), read(path))

    def test_what_is_written_by_hand_stays(self) -> None:
        for path, line in (
            ("deploy/tfjob/ctr.yaml", "# A factorization machine on"),
            ("deploy/tfjob/mnist.yaml", "# MNIST"),
            ("deploy/tfjob/mnist_data.yaml", "SOURCE: https"),
            ("deploy/tfjob/pytorch_mnist.yaml", "# A model of your own in PyTorch"),
            ("deploy/pytorchjob/pytorch_mnist.yaml", "# A model of your own in PyTorch"),
            ("deploy/kubernetes/jobset.yaml", "targetReplicatedJobs: [chief"),
            ("deploy/kubernetes/statefulset.yaml", "clusterIP: "),
            ("deploy/kubernetes/trainer_v2.yaml", "numNodes: "),
            ("deploy/openshift/template.yaml", "- name: WORKERS"),
        ):
            with self.subTest(path):
                changed = read(path).replace(line, line + "x", 1)
                self.assertNotEqual(changed, read(path))
                self.assertEqual(render_manifests.renewed(path, changed), changed)
