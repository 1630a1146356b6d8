"""Tests of count_tests.py: nothing that failed may be counted as passed."""

import os
import tempfile
import unittest

from count_tests import Counts, count_ctest, count_unittest, failed_cases, slowest_cases, unended_programs


class UnittestReportTest(unittest.TestCase):
    def test_all_passed(self):
        self.assertEqual(count_unittest("....\nRan 4 tests in 0.1s\n\nOK\n"), Counts(4, 0, 0))

    def test_failures_errors_and_skips(self):
        report = "Ran 9 tests in 1s\n\nFAILED (failures=1, errors=2, skipped=3)\n"
        self.assertEqual(count_unittest(report), Counts(3, 3, 3))

    def test_unfinished_run_is_a_failure(self):
        self.assertEqual(count_unittest("Killed\n"), Counts(0, 1, 0))

    def test_failed_to_import_counts(self):
        report = "Ran 1 test in 0.0s\n\nFAILED (errors=1)\n"
        self.assertEqual(count_unittest(report), Counts(0, 1, 0))


class SlowestCasesTest(unittest.TestCase):
    def test_the_slowest_first_without_the_quick_ones(self):
        with tempfile.TemporaryDirectory() as root:
            results = os.path.join(root, "release", "results")
            os.makedirs(results)
            with open(os.path.join(results, "a_test.xml"), "w", encoding="utf-8") as file:
                file.write(
                    '<testsuites><testsuite><testcase classname="A" name="Slow" time="3.5"/>'
                    '<testcase classname="A" name="Quick" time="0.01"/>'
                    '<testcase classname="A" name="Slower" time="4.25"/></testsuite></testsuites>'
                )
            with open(os.path.join(results, "b_test.xml"), "w", encoding="utf-8") as file:
                file.write("<testsuites><test")  # It was killed while it wrote.
            slow, slower = (3.5, "release: a_test: A.Slow"), (4.25, "release: a_test: A.Slower")
            self.assertEqual(slowest_cases(5, [results]), [slower, slow])
            self.assertEqual(slowest_cases(1, [results]), [slower])


class FailedCasesTest(unittest.TestCase):
    def test_names_the_case_and_what_it_expected(self):
        with tempfile.TemporaryDirectory() as root:
            results = os.path.join(root, "asan", "results")
            os.makedirs(results)
            with open(os.path.join(results, "a_test.xml"), "w", encoding="utf-8") as file:
                file.write(
                    '<testsuites><testsuite><testcase classname="A" name="Fine"/>'
                    '<testcase classname="A" name="Wrong"><failure message="a_test.cc:7&#x0A;Expected 1"/>'
                    '<failure message="a_test.cc:8"/></testcase></testsuite></testsuites>'
                )
            with open(os.path.join(results, "b_test.xml"), "w", encoding="utf-8") as file:
                file.write("<testsuites><test")
            expected = [("asan: a_test: A.Wrong", "a_test.cc:7\nExpected 1\na_test.cc:8")]
            self.assertEqual(failed_cases([results]), expected)

    def test_a_message_may_quote_what_is_no_text(self):
        with tempfile.TemporaryDirectory() as root:
            results = os.path.join(root, "asan", "results")
            os.makedirs(results)
            with open(os.path.join(results, "a_test.xml"), "wb") as file:
                file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites><testsuite><testcase classname="A" '
                           b'name="Wrong"><failure message="a log: \xc3 \x1b"/></testcase></testsuite></testsuites>')  # fmt: skip
            self.assertEqual(failed_cases([results]), [("asan: a_test: A.Wrong", "a log: \ufffd ?")])


class UnendedProgramsTest(unittest.TestCase):
    def test_names_the_last_case_begun_of_a_program_without_results(self):
        with tempfile.TemporaryDirectory() as root:
            results = os.path.join(root, "release", "results")
            os.makedirs(results)
            with open(os.path.join(results, "b_test.xml"), "w", encoding="utf-8") as file:
                file.write('<testsuites><testcase><failure message="b"/></testcase></testsuites>')
            with open(os.path.join(results, "ctest.junit"), "w", encoding="utf-8") as file:
                file.write(
                    '<testsuite><testcase name="a_test" status="fail" time="600.2"><failure message="Timeout"/>'
                    "<system-out>[ RUN      ] A.Bad&#x0A;[  FAILED  ] A.Bad (3 ms)&#x0A;[ RUN      ] A.Hangs&#x0A;"
                    'last words&#x0A;</system-out></testcase><testcase name="b_test" status="fail" time="1"/>'
                    '<testcase name="c_test" status="run" time="1"/></testsuite>'
                )
            lines = [
                "Timeout after 600 s; the last case begun was A.Hangs; failed were A.Bad",
                "[ RUN      ] A.Bad",
                "[  FAILED  ] A.Bad (3 ms)",
                "[ RUN      ] A.Hangs",
                "last words",
            ]
            self.assertEqual(unended_programs([results]), [("release: a_test", "\n".join(lines))])


class CtestResultsTest(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)

    def _write(self, name, text):
        path = os.path.join(self._directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def _count(self, testcases):
        junit = self._write("ctest.junit", f"<testsuite>{testcases}</testsuite>")
        return count_ctest(junit, self._directory.name)

    def test_counts_the_cases_of_a_program(self):
        self._write(
            "a_test.xml",
            '<testsuites><testsuite><testcase status="run" result="completed"/>'
            '<testcase status="run" result="skipped"><skipped/></testcase>'
            '<testcase status="notrun" result="suppressed"/></testsuite></testsuites>',
        )
        self.assertEqual(self._count('<testcase name="a_test" status="run"/>'), Counts(1, 0, 1))

    def test_counts_failed_cases(self):
        self._write(
            "a_test.xml",
            '<testsuites><testsuite><testcase status="run"><failure/></testcase>'
            '<testcase status="run"/></testsuite></testsuites>',
        )
        testcase = '<testcase name="a_test" status="fail"><failure/></testcase>'
        self.assertEqual(self._count(testcase), Counts(1, 1, 0))

    def test_crash_without_xml_is_a_failure(self):
        testcase = '<testcase name="a_test" status="fail"><failure/></testcase>'
        self.assertEqual(self._count(testcase), Counts(0, 1, 0))

    def test_sanitizer_report_after_good_cases_is_a_failure(self):
        self._write("a_test.xml", '<testsuites><testsuite><testcase status="run"/></testsuite></testsuites>')
        testcase = '<testcase name="a_test" status="fail"><failure/></testcase>'
        self.assertEqual(self._count(testcase), Counts(1, 1, 0))

    def test_program_that_was_not_built_is_a_failure(self):
        testcase = (
            '<testcase name="a_test" status="notrun">'
            '<skipped message="Unable to find executable: a_test"/></testcase>'
        )
        self.assertEqual(self._count(testcase), Counts(0, 1, 0))

    def test_disabled_program_is_skipped(self):
        self.assertEqual(self._count('<testcase name="a_test" status="disabled"/>'), Counts(0, 0, 1))

    def test_missing_results_are_a_failure(self):
        self.assertEqual(count_ctest("/nonexistent", self._directory.name), Counts(0, 1, 0))
