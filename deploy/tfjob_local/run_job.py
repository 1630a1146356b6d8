"""The command `run`: the objects that run the job, put together."""

import argparse
import contextlib
import os
import sys
import time
from typing import Optional, Sequence

from tfjob_api.model import TrainingJob
from tfjob_api.naming import replica_names, replicas
from tfjob_api.status import SUSPENDED

from .addresses import Reservations
from .console import BOLD, YELLOW, Console
from .control import ControlDirectory, ControlError, ControlServer
from .dashboard_links import DashboardLinks, page_answers
from .dry_run import describe_job, describe_plan
from .flags import PROGRAM
from .job_operator import JobOperator
from .job_requests import JobRequests
from .job_view import Journal, JobView
from .kubelet.backoff import Backoff
from .kubelet.keeper import Keeper
from .kubelet.kubelet import Kubelet
from .launcher import Launcher
from .live_output import LiveOutput
from .local_plan import InputError, LocalPlan
from .log_follower import LogFollower, Selection
from .operator_rules import Rules
from .progress import Progress, TrainingFiles
from .run_directory import RunLock
from .signals import SignalQueue
from .summary import Summary
from .tfjob_operator import Operator
from .trainjob_operator import TrainJobOperator

# The exit code after the command `stop`: as after SIGTERM.
_EXIT_STOPPED = 143


def run_job(options: argparse.Namespace, extra: Sequence[str]) -> int:
    """The exit code. ManifestError, InputError, PlanError, AddressesError: nothing was started."""
    console = Console(color=options.color)
    with Reservations() as reservations:
        plan = LocalPlan(options, extra, reservations)
        selection = _selection(options, plan)
        _print_warnings(plan, console)
        if options.dry_run:
            _describe(plan, console)
            return 0
        with contextlib.ExitStack() as stack:
            lock = stack.enter_context(plan.take_run_dir())
            exit_code = _Run(options, plan, selection, console, lock, stack).run()
        return exit_code


class _Run:
    """One job from here on runs, or has run."""

    def __init__(
        self,
        options: argparse.Namespace,
        plan: LocalPlan,
        selection: Selection,
        console: Console,
        lock: RunLock,
        stack: contextlib.ExitStack,
    ):
        """`lock`: of the run directory. `stack`: what must be closed when the job is over."""
        self._plan = plan
        self._leader_is_keelsons = plan.leader_is_keelsons
        self._console = console
        self._files = TrainingFiles(plan.model_dir)
        self._prepare_directories()
        signals = stack.enter_context(SignalQueue())
        strict = options.strict_emulation
        self._kubelet = Kubelet(
            plan=lambda replica_type, index: plan.plan(self._operator.job, replica_type, index),
            job_name=plan.job.name,
            log_dir=plan.run_dir.log_dir,
            clock=time.monotonic,
            backoff=Backoff.strict() if strict else Backoff.lenient(),
            unblocked_signals=signals.watched,
            keeper=stack.enter_context(
                Keeper(plan.run_dir.log_dir, on_event=self._event, keep_open=(lock.descriptor,))
            ),
            on_event=self._event,
            on_init_failure=lambda replica_name, container: self._output.init_failed(replica_name, container),
        )
        rules = Rules.strict() if strict else Rules.lenient(options.max_restarts)
        self._operator = self._make_operator(rules)
        self._progress = Progress(self._files, console, time.monotonic)
        links = self._dashboard_links()
        self._output = LiveOutput(
            console,
            LogFollower(plan.run_dir.log_dir, selection, replica_names(plan.job), console, time.monotonic),
            links,
            self._progress,
            lambda: self._operator.status.to_document(),
            self._instead_of_progress,
        )
        self._view = JobView(
            self._operator,
            self._kubelet,
            plan.manifest.document,
            plan.run_dir,
            lambda: self._instead_of_progress() or self._progress.text(),
            links.urls,
        )
        self._journal = Journal(self._view, plan.run_dir, self._warn)
        self._launcher = Launcher(
            self._operator,
            self._kubelet,
            signals,
            self._output,
            self._journal,
            time.monotonic,
            strict,
            lambda pod: plan.plan(self._operator.job, pod.replica_type, pod.index).main.ends_with_job,
        )
        control = self._open_control(stack)
        if control is not None:
            self._launcher.serve(control)

    def run(self) -> int:
        result = self._launcher.run()
        self._output.close()
        self._journal.close()
        summary = Summary(
            self._plan.job.name, self._plan.model_dir, self._plan.run_dir, self._files, self._plan.bin_dir
        )
        summary.print(result, self._kubelet.records(), self._view.elapsed, self._console)
        return result.exit_code

    def _make_operator(self, rules: Rules) -> JobOperator:
        plan = self._plan
        if plan.job.kind.is_job_set:
            return TrainJobOperator(plan.job, self._kubelet, time.time, rules, self._event)
        return Operator(plan.job, self._kubelet, time.time, plan.version, rules, self._event)

    def _prepare_directories(self) -> None:
        plan = self._plan
        earlier_logs = plan.run_dir.prepare()
        if earlier_logs:
            self._console.line(f"the logs of the earlier run are in {earlier_logs} now")
        if self._leader_is_keelsons:
            os.makedirs(plan.model_dir, exist_ok=True)
        counts = ", ".join(f"{spec.replicas} {t.lower()}" for t, spec in plan.job.replica_specs.items())
        self._console.line(f"job {plan.job.name}: {counts}; logs in {plan.run_dir.log_dir}")

    def _dashboard_links(self) -> DashboardLinks:
        return DashboardLinks(
            self._plan.dashboard_ports,
            lambda: [record.name for record in self._kubelet.records() if record.running],
            lambda text: self._console.line(self._console.paint(text, BOLD)),
            time.monotonic,
            page_answers,
        )

    def _open_control(self, stack: contextlib.ExitStack) -> Optional[ControlServer]:
        requests = JobRequests(
            self._operator,
            self._kubelet,
            self._check,
            lambda: self._plan.servers_are_keelsons,
            self._view.build,
            lambda: self._launcher.stop(_EXIT_STOPPED, "stopped by the command stop"),
        )
        try:
            directory = stack.enter_context(ControlDirectory())
            control = ControlServer(directory, requests.handle, time.monotonic)
        except (ControlError, OSError) as error:
            self._warn(f"no commands from other terminals: {error}")
            return None
        stack.callback(control.close)
        return control

    def _check(self, job: TrainingJob) -> None:
        self._plan.check(job)
        _print_warnings(self._plan, self._console)

    def _instead_of_progress(self) -> str:
        """Returns the line for a job that is not training, or does not report its progress."""
        if self._operator.status.is_true(SUSPENDED):
            return f"suspended; goes on after: {sys.argv[0] or PROGRAM} resume --job {self._plan.job.name}"
        if not self._leader_is_keelsons:
            running = sum(record.running for record in self._kubelet.records())
            return f"{running} of {self._operator.job.total_replicas()} replicas running"
        return ""

    def _warn(self, text: str) -> None:
        self._console.line(f"{self._console.paint('warning:', YELLOW)} {text}")

    def _event(self, text: str) -> None:
        self._output.event(text)


def _selection(options: argparse.Namespace, plan: LocalPlan) -> Selection:
    words = [word.strip() for text in options.follow for word in text.split(",")]
    try:
        return Selection(words, replica_names(plan.job), plan.leader)
    except ValueError as error:
        raise InputError(f"--follow: {error}") from error


def _print_warnings(plan: LocalPlan, console: Console) -> None:
    for warning in plan.new_warnings():
        console.line(f"{console.paint('warning:', YELLOW)} {warning}")


def _describe(plan: LocalPlan, console: Console) -> None:
    console.line(describe_job(plan.job, plan.model_dir, plan.controller))
    console.line()
    for (replica_type, index), name in zip(replicas(plan.job), replica_names(plan.job)):
        for line in describe_plan(name, plan.plan(plan.job, replica_type, index)):
            console.line(line)
