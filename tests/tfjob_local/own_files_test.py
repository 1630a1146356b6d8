"""Directories and files of a run are made where they are said to be, whatever links stand there."""

import os
import stat

import support
from tfjob_local.own_files import make_directory, open_own, write_new_file


class OwnFilesTest(support.TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.write("elsewhere/kept", "kept")
        self.root = self.path("root")

    def link(self, *parts):
        """A link that leads out of the root."""
        path = self.path("root", *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(self.path("elsewhere"), path)
        return path

    def assert_not_followed(self, where, call, *arguments, **options):
        with self.assertRaises(OSError) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.filename, where)
        self.assertEqual(os.listdir(self.path("elsewhere")), ["kept"])

    def test_directories(self):
        make_directory(self.root, self.path("root", "a", "b"), mode=0o700)
        make_directory(self.root, self.path("root", "a", "b"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("root", "a", "b")).st_mode), 0o700)
        make_directory(self.path("other", "root"), self.path("other", "root"))
        self.assertTrue(os.path.isdir(self.path("other", "root")))

    def test_the_users_root_may_be_a_link(self):
        os.symlink(self.path("elsewhere"), self.root)
        make_directory(self.root, self.path("root", "a"))
        make_directory(self.root, self.root)
        self.assertEqual(sorted(os.listdir(self.path("elsewhere"))), ["a", "kept"])

    def test_links_are_not_followed(self):
        link = self.link("a", "link")
        self.assert_not_followed(link, make_directory, self.root, os.path.join(link, "x"))
        self.assert_not_followed(link, make_directory, self.root, link)
        self.assert_not_followed(link, write_new_file, self.root, os.path.join(link, "x"), b"", 0o666)
        self.assert_not_followed(link, write_new_file, self.root, link, b"", 0o666)

    def test_fresh_directories(self):
        self.write("root/a/b/old", "")
        make_directory(self.root, self.path("root", "a"), fresh=True)
        self.assertEqual(os.listdir(self.path("root", "a")), [])
        link = self.link("link")
        make_directory(self.root, link, fresh=True)
        self.assertFalse(os.path.islink(link))
        self.assertEqual((os.listdir(link), os.listdir(self.path("elsewhere"))), ([], ["kept"]))
        self.write("root/file", "")
        make_directory(self.root, self.path("root", "file"), fresh=True)
        self.assertEqual(os.listdir(self.path("root", "file")), [])

    def test_files(self):
        path = self.path("root", "a", "f")
        write_new_file(self.root, path, b"x", 0o600)
        self.assertEqual((self.read("root/a/f"), stat.S_IMODE(os.stat(path).st_mode)), ("x", 0o600))
        self.assert_not_followed(path, write_new_file, self.root, path, b"y", 0o600)

    def test_nothing_is_made_above_the_root(self):
        with self.assertRaisesRegex(AssertionError, "is not beneath"):
            make_directory(self.root, self.path("elsewhere", "x"))
        self.assertEqual(os.listdir(self.path("elsewhere")), ["kept"])

    def test_opener(self):
        os.makedirs(self.root)
        for path in (self.path("root", "log"), self.path("root", "log")):
            with open(path, "a", encoding="utf-8", opener=open_own) as file:
                file.write("x")
        self.assertEqual(self.read("root/log"), "xx")
        os.symlink(self.path("elsewhere", "new"), self.path("root", "link"))
        path = self.path("root", "link")
        self.assert_not_followed(path, open, path, "w", encoding="utf-8", opener=open_own)
