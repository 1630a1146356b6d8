"""The connection with the agent, whose end a Peer in a thread plays."""

import array
import math
import socket
import threading
import time
import unittest
from unittest import mock

import support  # noqa: F401  (finds the package)
from peer import Died, Peer, Plan

import keelson
from keelson.lent_memory import LentMemory
from keelson.session import Session
from keelson.work import Work


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.values_stay_new_for(1e9)

    def values_stay_new_for(self, seconds):
        patch = mock.patch("keelson.session._NEW_SECONDS", seconds)
        patch.start()
        self.addCleanup(patch.stop)

    def start(self, on_slice=lambda: None, **plan):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.peer = Peer(theirs, Plan(**plan))
        self.trouble = []
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        self.session = Session(ours, on_slice)
        self.addCleanup(self.stop)
        return self.session

    def serve(self):
        try:
            self.peer.serve()
        except Died:
            pass
        except BaseException as error:
            self.trouble.append(error)

    def stop(self):
        self.session.close()
        self.thread.join(10)
        self.assertFalse(self.thread.is_alive())
        self.assertEqual(self.trouble, [])

    def join(self, on_slice=lambda: None, **plan):
        self.start(on_slice, **plan)
        self.model = self.session.join("python 3")
        return Work(self.session)

    def write(self, *numbers):
        self.model.arrays["w"].gradients[:] = array.array("f", numbers).tobytes()

    def values(self):
        return self.model.arrays["w"].values.cast("f").tolist()

    def test_steps_are_applied_and_counted(self):
        work = self.join()
        self.assertEqual((self.model.max_steps, self.model.arrays["w"].shape), (5, (2,)))
        seen = []
        while (ticket := work.take()) is not None:
            self.assertTrue(work.begin(ticket))
            seen += ticket.records
            self.write(0.5, 1)
            self.assertTrue(work.push(2.0))
            self.assertEqual(work.global_step, ticket.number + 1)
        self.assertTrue(work.is_over)
        self.assertEqual(seen, list(range(10)))
        self.assertEqual(self.values(), [-1.5, -3.0])
        # Values that are new need not be asked for.
        self.assertEqual([e for e in self.peer.events if e[0] == "begin"], [("begin", 0)])
        self.session.leave(10)
        self.assertEqual(self.peer.events[-1], ("leave",))
        self.assertEqual(self.peer.computes, "python 3")

    def test_a_ticket_may_want_to_be_asked_for(self):
        work = self.join(ask=True, steps=3)
        while (ticket := work.take()) is not None:
            work.begin(ticket)
            work.push(1.0)
        self.assertEqual([e[:2] for e in self.peer.events], [(kind, n) for n in range(3) for kind in ("begin", "step")])

    def test_a_ticket_of_another_is_left_out(self):
        work = self.join(ask=True, steps=3, invalid=[1])
        begun = []
        while (ticket := work.take()) is not None:
            begun.append(work.begin(ticket))
            if begun[-1]:
                work.push(1.0)
        self.assertEqual(begun, [True, False, True])
        self.assertTrue(work.is_over)

    def test_after_gradients_that_were_not_wanted_values_are_asked_for(self):
        work = self.join(steps=3, unwanted=[0])
        counted = []
        while (ticket := work.take()) is not None:
            work.begin(ticket)
            counted.append(work.push(1.0))
        self.assertEqual(counted, [False, True, True])
        self.assertEqual([e[1] for e in self.peer.events if e[0] == "begin"], [0, 1])

    def test_a_skipped_ticket_has_the_loss_before(self):
        work = self.join(steps=2)
        work.begin(work.take())
        work.push(3.0)
        work.begin(work.take())
        work.skip()
        self.assertEqual([e for e in self.peer.events if e[0] == "skip"], [("skip", 1, 3.0)])
        with self.assertRaisesRegex(RuntimeError, "expected one push for each step"):
            work.push(1.0)

    def test_a_ticket_that_is_skipped_before_any_step_has_no_loss(self):
        work = self.join(steps=2)
        for _ in range(2):
            work.begin(work.take())
            work.skip()
        losses = [e[2] for e in self.peer.events if e[0] == "skip"]
        self.assertEqual([math.isnan(loss) for loss in losses], [True, True])

    def test_many_records_come_in_parts(self):
        work = self.join(records=10_000, batch_size=9_000, steps=1)
        self.assertEqual(list(work.take().records), list(range(9_000)))

    def test_no_ticket_comes_while_one_is_unfinished(self):
        work = self.join(one_at_a_time=True, steps=2)
        first = work.take()
        self.assertIsNone(work.take(patience=0.01))
        self.assertTrue(work.has_tickets)
        work.begin(first)
        work.push(1.0)
        self.assertEqual(work.take().number, 1)

    def test_training_ends_early(self):
        work = self.join(steps=100)
        work.begin(work.take())
        self.session.end_training("good\nenough " + "é" * 1000)
        work.push(1.0)
        while (ticket := work.take()) is not None:
            work.begin(ticket)
            work.push(1.0)
        reason = [e for e in self.peer.events if e[0] == "end"][0][1]
        self.assertTrue(reason.startswith("good enough é"))
        self.assertLessEqual(len(reason.encode()), 1000)
        self.assertLess(work.global_step, 4)

    def test_a_snapshot_is_asked_for(self):
        work = self.join(steps=3)
        work.begin(work.take())
        work.push(1.0)
        self.assertEqual(self.session.save(), 1)

    def test_a_snapshot_that_is_not_written_is_an_error(self):
        self.join(save_code=14)
        with self.assertRaisesRegex(keelson.Error, "^the disk is full$"):
            self.session.save()

    def test_new_values_are_announced(self):
        work = self.join(steps=2)
        announced = []
        work.on_new_values = lambda: announced.append(self.values())
        work.begin(work.take())
        self.write(1, 1)
        work.push(1.0)
        work.begin(work.take())
        self.assertEqual(announced, [[1.0, 2.0], [0.0, 1.0]])

    def test_the_job_is_done_already(self):
        session = self.start(is_done=True)
        self.assertIsNone(session.join("python"))
        self.assertIsNone(session.take())
        session.leave(10)

    def test_values_that_are_old_are_asked_for(self):
        self.values_stay_new_for(0)
        work = self.join(steps=2)
        work.begin(work.take())
        work.push(1.0)
        work.begin(work.take())
        self.assertEqual([e for e in self.peer.events if e[0] == "begin"], [("begin", 0), ("begin", 1)])

    def test_joining_fails(self):
        for code, kind, exit_code in (
            (3, keelson.JoinError, 2), (9, keelson.JoinError, 2), (14, keelson.AgentLost, 138), (13, keelson.AgentLost, 1),
        ):  # fmt: skip
            with self.subTest(code=code):
                session = self.start(fail_join=True, fail_code=code, fail_text="w: expected [2], found [3]")
                with self.assertRaisesRegex(kind, r"^w: expected \[2\], found \[3\]$") as raised:
                    session.join("python")
                self.assertEqual(raised.exception.exit_code, exit_code)
                self.stop()

    def test_the_agent_says_why_it_ends(self):
        work = self.join(fail_at=1)
        work.begin(work.take())
        work.push(1.0)
        work.begin(work.take())
        with self.assertRaisesRegex(keelson.AgentLost, "^ps-0 is away$") as raised:
            work.push(1.0)
        self.assertEqual(raised.exception.exit_code, 138)

    def test_the_agent_dies(self):
        work = self.join(die_at=0)
        work.begin(work.take())
        with self.assertRaisesRegex(keelson.AgentLost, "the connection has ended"):
            work.push(1.0)
        self.thread.join(10)
        with self.assertRaises(keelson.AgentLost):
            work.take()

    def test_changes_of_lent_memory_are_found(self):
        """Of values between the agent's answers, of gradients while they are pushed; and nothing is found without changes."""
        for agent_changes_gradients in (False, True):
            work = self.join(steps=4, ask=True)
            work.lent_memory = LentMemory(self.model.arrays, agent_changes_gradients)
            push = self.session.push

            def push_and_write(*arguments, push=push):
                self.write(9, 9)
                return push(*arguments)

            work.begin(work.take())
            self.write(1, 1)
            work.push(1.0)
            work.begin(work.take())
            work.skip()
            work.begin(work.take())
            words = "^w: expected its gradient unchanged, found them changed while it was pushed: another thread"
            with mock.patch.object(self.session, "push", push_and_write):
                if agent_changes_gradients:
                    work.push(1.0)
                else:
                    self.assertRaisesRegex(RuntimeError, words, work.push, 1.0)
            if agent_changes_gradients:
                for call in (lambda: work.begin(work.take()), work.skip, lambda: work.push(1.0)):
                    self.model.arrays["w"].values[0] ^= 1
                    words = "^w: expected its values unchanged, found them changed since the step before: the script's changes"
                    self.assertRaisesRegex(RuntimeError, words, call)
                    self.model.arrays["w"].values[0] ^= 1
            self.stop()

    def test_waits_are_made_of_slices(self):
        slices = []

        def on_slice():
            slices.append(time.monotonic())
            if len(slices) == 2:
                raise KeyboardInterrupt

        session = self.start(on_slice, silent=True)
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            session.join("python")
        self.assertGreater(time.monotonic() - begin, 0.3)

    def test_an_agent_that_waits_for_a_server_is_left_at_once(self):
        interrupts = []

        def on_slice():
            if interrupts:
                raise interrupts.pop()

        work = self.join(on_slice, stuck_at=0)
        work.begin(work.take())
        interrupts.append(KeyboardInterrupt())
        with self.assertRaises(KeyboardInterrupt):
            work.push(1.0)
        begin = time.monotonic()
        self.session.leave(5)
        self.session.close()
        self.assertLess(time.monotonic() - begin, 2)
        self.thread.join(10)
        self.assertEqual(self.peer.events[-1], ("closed",))

    def test_another_protocol_is_refused(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        session = Session(ours)
        self.addCleanup(session.close)
        for packet, words in ((b"1234", "expected a header"), (b"\x64\0\0\0\0\0\0\0", "expected a kind of message"),
                              (b"\x66\0\0\0\x08\0\0\0", "expected 8 bytes behind")):  # fmt: skip
            theirs.send(packet)
            with self.assertRaisesRegex(keelson.AgentLost, words):
                session.join("python")
        theirs.close()


if __name__ == "__main__":
    unittest.main()
