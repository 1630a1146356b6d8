"""Text protos as files have them."""

import glob
import math
import os
import unittest

import support

from keelson.text_proto import Enum
from keelson.text_proto_reader import parse


class TextProtoReaderTest(unittest.TestCase):
    def test_scalars(self):
        found = parse("a: 1 b: -2.5e1 c: 0x1F d: 017 e: 1.5f f: true g: FALSE h: inf i: - 3 j: .5", "f").fields
        self.assertEqual(
            {name: values[0] for name, values in found.items()},
            {"a": 1, "b": -25.0, "c": 31, "d": 15, "e": 1.5, "f": True, "g": Enum("FALSE"), "h": math.inf, "i": -3,
             "j": 0.5},
        )  # fmt: skip

    def test_texts(self):
        (found,) = parse(r"""a: "x\303\244\n\"" 'b\x41\u00e4' # "no part of it" """, "f").texts("a")
        self.assertEqual(found, 'xä\n"bAä')

    def test_messages_lists_and_separators(self):
        message = parse("a { b: 1, b: 2; } a: < b: [3, 4] > c [ { d: FOO }, {} ] e: []", "f")
        self.assertEqual([each.integers("b") for each in message.messages("a")], [[1, 2], [3, 4]])
        self.assertEqual([each.text("d", "none") for each in message.messages("c")], ["FOO", "none"])
        self.assertEqual((message.integers("e"), "e" in message, "f" in message), ([], True, False))

    def test_what_is_absent_has_its_default(self):
        message = parse("", "f")
        self.assertEqual((message.integer("a"), message.number("a", 0.5), message.text("a", "b"), message.flag("a")),
                         (0, 0.5, "b", False))  # fmt: skip
        self.assertEqual(message.message("a").integers("b"), [])

    def test_what_is_wrong_has_its_place(self):
        for text, expected in (
            ("a: 1\nb: [1 2]", 'f:2:7: expected "," or "]", found 2'),
            ("a {", 'f:1:4: expected a field\'s name or "}", found the end'),
            ("a 5", 'f:1:3: expected ":" or "{", found 5'),
            ("a: }", "f:1:4: expected a value, found }"),
            ("a: 1 }", "f:1:6: expected a field's name, found }"),
            ('\n a: "x\n"', "f:2:5: expected a field, found '\"x'"),
            ("a: 08x", "f:1:4: expected a field, found '08x'"),
        ):
            with self.assertRaises(ValueError) as raised:
                parse(text, "f")
            self.assertEqual(str(raised.exception), expected)

    def test_what_has_another_kind_has_its_name(self):
        message = parse("\n a { b: 0.5 c { } d: 'x' e: true }", "f").message("a")
        for read, expected in (
            (lambda: message.integer("b"), "f:2:6: b: expected a whole number, found 0.5"),
            (lambda: message.integer("e"), "f:2:6: e: expected a whole number, found True"),
            (lambda: message.text("c"), "f:2:6: c: expected a text, found a message"),
            (lambda: message.number("d"), "f:2:6: d: expected a number, found 'x'"),
            (lambda: message.message("d"), "f:2:6: d: expected {, found 'x'"),
            (lambda: message.flag("d"), "f:2:6: d: expected true or false, found 'x'"),
        ):
            with self.assertRaises(ValueError) as raised:
                read()
            self.assertEqual(str(raised.exception), expected)

    def test_reads_all_configurations(self):
        paths = glob.glob(os.path.join(support.REPOSITORY, "configs", "*.textproto"))
        self.assertGreater(len(paths), 10)
        for path in paths:
            with self.subTest(path=path), open(path, encoding="utf-8") as file:
                config = parse(file.read(), path)
                self.assertGreater(config.message("train").integer("batch_size"), 0)
                self.assertGreater(len(config.message("model").messages("layers")), 0)


if __name__ == "__main__":
    unittest.main()
