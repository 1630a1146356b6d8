"""Container paths become local directories, wherever they stand; contents come from the manifest."""

import os
import unittest

import kubelet_support
from kubelet_support import mounted, spec
from tfjob_api.model import ClusterObjects, VolumeFile
from tfjob_local.kubelet.plan import LocalDirectory, PlanError
from tfjob_local.kubelet.volumes import Mounts, PodVolumes, VolumePlaces

OBJECTS = ClusterObjects(
    config_maps={"config": {"job.textproto": b"a", "more": b"b"}}, secrets={"keys": {"id": b"k"}}
)


class VolumesTest(kubelet_support.WarningsTest):
    def volumes(self, replica_spec, who="ps-1", claims=None, host_paths=True):
        places = VolumePlaces(self.path("volumes"), claims or {}, host_paths)
        return PodVolumes(replica_spec, who, OBJECTS, places, self.warn)

    def local(self, replica_spec, **arguments):
        """Where /mnt leads, and what has to be there."""
        volumes = self.volumes(replica_spec, **arguments)
        path = volumes.mounts(replica_spec.container).pairs["/mnt"]
        return path, volumes.directories

    def assert_refused(self, text, **fields):
        with self.assertRaises(PlanError) as caught:
            self.local(spec("PS", **fields))
        self.assertEqual(str(caught.exception), text)

    def test_claim_is_one_directory_for_all(self):
        claim = spec("PS", **mounted("persistentVolumeClaim", "shared"))
        shared, root = self.path("volumes", "shared"), self.path("volumes")
        for who in ("ps-0", "ps-1"):
            self.assertEqual(self.local(claim, who=who), (shared, (LocalDirectory(shared, root),)))

    def test_claim_may_be_any_directory(self):
        claim = spec("PS", **mounted("persistentVolumeClaim", "shared"))
        mine = self.path("mine")
        self.assertEqual(
            self.local(claim, claims={"shared": mine}), (self.path("mine"), (LocalDirectory(mine),))
        )

    def test_empty_dir_is_each_pods_own_and_new(self):
        own, root = self.path("volumes", "ps-1", "v"), self.path("volumes")
        self.assertEqual(
            self.local(spec("PS", **mounted("emptyDir"))), (own, (LocalDirectory(own, root, fresh=True),))
        )

    def test_host_path_is_itself(self):
        there = self.path("there")
        os.mkdir(there)
        self.assertEqual(self.local(spec("PS", **mounted("hostPath", there))), (there, ()))

    def test_host_path_that_is_not_permitted(self):
        root = self.path("volumes")
        for source, inner in (("/data/mnist", "hostPath/data/mnist"), ("/", "hostPath"), ("a/", "hostPath/a")):
            there = os.path.join(root, inner)
            directories = (LocalDirectory(there, root),)
            self.assertEqual(
                self.local(spec("PS", **mounted("hostPath", source)), host_paths=False), (there, directories)
            )
        fields = mounted("hostPath", "/data", sub_path="x")
        path, directories = self.local(spec("PS", **fields), host_paths=False)
        self.assertEqual(path, os.path.join(root, "hostPath", "data", "x"))
        self.assertEqual(directories[-1], LocalDirectory(path, root))

    def test_host_path_is_made_where_it_can_be(self):
        absent = self.path("a", "b")
        self.assertEqual(
            self.local(spec("PS", **mounted("hostPath", absent))), (absent, (LocalDirectory(absent),))
        )

    def test_host_path_below_a_file(self):
        self.write("file", "")
        path = self.path("file", "x")
        self.assert_refused(
            f"ps-1: volume v: hostPath {path}: no such directory on this machine, and it cannot be made in "
            f"{self.path('file')}",
            **mounted("hostPath", path),
        )

    def test_config_map_is_a_directory_of_its_files(self):
        own = self.path("volumes", "ps-1", "v")
        files = {"job.textproto": b"a", "more": b"b"}
        self.assertEqual(
            self.local(spec("PS", **mounted("configMap", "config"))),
            (own, (LocalDirectory(own, self.path("volumes"), fresh=True, files=files),)),
        )

    def test_secret_is_private(self):
        _, directories = self.local(spec("PS", **mounted("secret", "keys")))
        self.assertTrue(directories[0].private)
        self.assertEqual(directories[0].files, {"id": b"k"})

    def test_items_choose_and_rename(self):
        items = (VolumeFile("more", "sub/renamed"),)
        _, directories = self.local(spec("PS", **mounted("configMap", "config", items=items)))
        self.assertEqual(directories[0].files, {"sub/renamed": b"b"})

    def test_sub_path_is_one_file(self):
        fields = mounted("configMap", "config", sub_path="job.textproto")
        path, _ = self.local(spec("PS", **fields))
        self.assertEqual(path, self.path("volumes", "ps-1", "v", "job.textproto"))

    def test_sub_path_of_a_claim_is_made(self):
        path, directories = self.local(spec("PS", **mounted("persistentVolumeClaim", "c", sub_path="runs/1")))
        self.assertEqual(path, self.path("volumes", "c", "runs", "1"))
        self.assertEqual(directories[-1], LocalDirectory(path, self.path("volumes")))
        claim = spec("PS", **mounted("persistentVolumeClaim", "c", sub_path="x"))
        path, directories = self.local(claim, claims={"c": self.path("mine")})
        self.assertEqual((path, directories[-1].root), (self.path("mine", "x"), self.path("mine")))

    def test_missing_objects(self):
        self.assert_refused(
            'ps-1: volume v: the manifest\'s files: no ConfigMap "x", expected one of config',
            **mounted("configMap", "x"),
        )
        self.assert_refused(
            'ps-1: volume v: the manifest\'s files: no Secret "x", expected one of keys',
            **mounted("secret", "x"),
        )
        self.assert_refused(
            'ps-1: volume v: ConfigMap "config": no key "x", expected one of job.textproto, more',
            **mounted("configMap", "config", items=(VolumeFile("x", "y"),)),
        )

    def test_optional_objects_may_miss(self):
        absent = mounted("configMap", "x", optional=True)
        self.assertEqual(self.local(spec("PS", **absent))[1][0].files, {})
        absent_key = mounted("configMap", "config", items=(VolumeFile("x", "y"),), optional=True)
        self.assertEqual(self.local(spec("PS", **absent_key))[1][0].files, {})

    def test_what_has_no_content_is_said(self):
        self.local(spec("PS", **mounted("downwardAPI")))
        self.assertEqual(self.warnings, ["PS: the volume v (downwardAPI) has no content locally"])

    def test_mount_at_the_root_is_left_out(self):
        replica_spec = spec("PS", **mounted("emptyDir", path="/"))
        self.assertEqual(self.volumes(replica_spec).mounts(replica_spec.container).pairs, {})
        self.assertEqual(
            self.warnings, ["PS: the volume v is mounted at /, paths in it are not translated"]
        )


class MountsTest(unittest.TestCase):
    MOUNTS = Mounts({"/data": "/L/d", "/data/deep": "/L/deep", "/model": "/L/model"})

    def test_paths_are_replaced(self):
        for text, expected in (
            ("/data", "/L/d"),
            ("/data/", "/L/d/"),
            ("/data/x/y", "/L/d/x/y"),
            ("/data/deep/x", "/L/deep/x"),
            ("/data/deeper", "/L/d/deeper"),
            ("--data_dir=/data", "--data_dir=/L/d"),
            ("/data:/model/b", "/L/d:/L/model/b"),
            ("a=/data,b=/model", "a=/L/d,b=/L/model"),
            ("file:///data/x", "file:///L/d/x"),
            ("cat </data/a >/model/b", "cat </L/d/a >/L/model/b"),
            ("ls '/data' \"/model\"", "ls '/L/d' \"/L/model\""),
            ("python x.py --dir /data\nls /model", "python x.py --dir /L/d\nls /L/model"),
            ("$(cat /data/x)", "$(cat /L/d/x)"),
        ):
            self.assertEqual(self.MOUNTS.translate(text), expected)

    def test_other_texts_stay(self):
        for text in (
            "/database", "/data-x", "/data.txt", "x/data", "/var/data/x", "./data", "../data", "~/data",
            "$HOME/data", "${X}/data", "hdfs://host/data", "hdfs://data", "data", "",
        ):
            self.assertEqual(self.MOUNTS.translate(text), text)
        self.assertEqual(Mounts({}).translate("/data"), "/data")
