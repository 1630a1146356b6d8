"""Event files that were full and have been thinned, read by TensorBoard and by the reader here.

TensorBoard's part is skipped where Python has none; tests/interop/run.sh makes an environment that has
it. Needs thinned_events, which is built with the tests, beside the programs of $KEELSON_BINARY_DIR or
build/release/bin.
"""

import importlib.util
import os
import subprocess
import tempfile
import unittest

import programs
import tensorboard_reader as reader

TIMEOUT_SECONDS = 120
STEPS = 5000
HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None


class ThinnedEventsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.run_folder = os.path.join(folder.name, "run")
        program = os.path.join(os.path.dirname(programs.BINARIES), "tests", "thinned_events")
        subprocess.run([program, cls.run_folder, str(STEPS)], check=True, timeout=TIMEOUT_SECONDS)
        cls.files = sorted(os.listdir(cls.run_folder))
        cls.points = reader.read_values(cls.run_folder)["loss"]
        cls.steps = [step for step, _, _ in cls.points]

    def steps_in(self, name):
        """The steps of one file, each event of which TensorFlow could parse."""
        steps = []
        for record in reader.read_records(os.path.join(self.run_folder, name)):
            event = reader.parse("Event", record)
            steps += [event.step for value in event.summary.value if value.tag == "loss"]
        return steps

    def test_one_thinned_file_comes_before_whole_ones(self):
        self.assertTrue(self.files[0].endswith(".thinned"), self.files)
        self.assertGreater(len(self.files), 2)
        self.assertFalse([name for name in self.files[1:] if name.endswith(".thinned")])
        whole = [step for name in self.files[1:] for step in self.steps_in(name)]
        self.assertEqual(whole, list(range(whole[0], STEPS + 1)))

    def test_first_and_last_steps_are_there_and_nothing_is_there_twice(self):
        self.assertEqual((self.steps[0], self.steps[-1]), (1, STEPS))
        self.assertEqual(self.steps, sorted(set(self.steps)))
        self.assertLess(len(self.steps), STEPS / 2)

    def test_the_thinned_steps_are_the_first_of_equal_ranges(self):
        thinned = self.steps_in(self.files[0])
        self.assertEqual(thinned[0], 1)
        # The last step before the whole files is kept, whatever range it is in.
        self.assertEqual(thinned[-1] + 1, self.steps_in(self.files[1])[0])
        firsts = thinned[1:-1]
        gaps = {after - before for before, after in zip(firsts, firsts[1:])}
        self.assertGreater(min(gaps), 1)
        for gap in gaps:
            self.assertEqual(gap & (gap - 1), 0, f"{gap} is no power of two")
        for step in firsts:
            self.assertEqual(step % min(gaps), 0)
        # The larger ranges have been thinned more often.
        self.assertLessEqual(max(gaps), 4 * min(gaps))

    def test_values_and_times_are_those_of_the_steps(self):
        for step, _, value in self.points:
            self.assertEqual(value.simple_value, step)
        times = [wall_time for _, wall_time, _ in self.points]
        self.assertEqual(times, sorted(times))

    @unittest.skipUnless(HAS_TENSORBOARD, "needs tensorboard: see tests/interop/run.sh")
    def test_tensorboard_shows_the_same_points(self):
        from tensorboard.backend.event_processing import event_accumulator

        accumulator = event_accumulator.EventAccumulator(
            self.run_folder, size_guidance={event_accumulator.SCALARS: 0}
        )
        with self.assertNoLogs(level="WARNING"):
            accumulator.Reload()
        shown = [(event.step, event.value) for event in accumulator.Scalars("loss")]
        self.assertEqual(shown, [(step, float(step)) for step in self.steps])


if __name__ == "__main__":
    unittest.main()
