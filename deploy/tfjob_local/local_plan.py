"""Plans each replica: checks the manifest and the flags against each other and this machine.

Nothing is started or written here, so that bad input leaves nothing behind.
"""

import argparse
import os
from dataclasses import replace
from typing import List, Mapping, Optional, Sequence, Tuple

from tfjob_api.model import Manifest, TrainingJob
from tfjob_api.naming import is_leader, replica_name, replicas
from tfjob_api.operator_version import OperatorVersion
from tfjob_api.reader import ReadOptions, read_manifest

from .addresses import AddressBook, AddressSource, DashboardPorts, FreePorts, LoopbackAliases, OwnHosts, Reservations
from .flags import CONFIG_FROM_SCRIPT, NO_DASHBOARD, REPOSITORY
from .gpus import detect_gpus
from .kubelet.flag_translation import flag_value
from .kubelet.gpu_dealer import gpu_limit
from .kubelet.permissions import Permissions
from .kubelet.plan import PodPlan
from .kubelet.planner import LocalSettings, PodPlanner, lies_in
from .kubelet.program_flags import PROGRAMS
from .kubelet.programs import ImageMap
from .run_directory import RunDirectory, RunDirectoryInUse, RunLock, fresh_run_path


class InputError(Exception):
    """A flag's value cannot be used; the text is one line."""


class LocalPlan:
    """ManifestError, InputError, PlanError, AddressesError: the job cannot be run as it is wanted."""

    def __init__(self, options: argparse.Namespace, extra: Sequence[str], reservations: Reservations):
        """`extra`: flags for every role."""
        _check_paths(options)
        self.manifest = _read(options)
        _check_controller(options, self.manifest.job)
        self.job: TrainingJob = self.manifest.job
        self.version: OperatorVersion = self.manifest.version
        self._addresses = AddressBook(_address_source(options, self.job, reservations))
        self._pages = _pages(options, reservations)
        self.bin_dir = os.path.abspath(options.bin_dir)
        self._options = options
        self._extra = extra
        self._warnings = [*self.manifest.warnings, *_flag_warnings(options, self.job)]
        self._told_warnings = 0
        self._plan_in(options.run_dir or self._fresh_run_path())
        if options.dashboard_port is not None and self._pages is not None and not self._pages.known:
            self._warnings.append(
                "--dashboard_port: no evaluator of Keelson's is there to serve the dashboard"
            )

    def take_run_dir(self) -> RunLock:
        """Makes the run directory this launcher's, which it was only meant to be; without --run_dir it is a new
        one, of another name where another launcher was faster. InputError: a launcher uses --run_dir."""
        given = self._options.run_dir
        if given:
            try:
                return self.run_dir.lock(self.job.name)
            except RunDirectoryInUse as error:
                raise InputError(f"--run_dir {given}: {error}; expected one of its own") from error
        while True:
            try:
                self.run_dir.make()
                return self.run_dir.lock(self.job.name)
            except (FileExistsError, RunDirectoryInUse):
                self._plan_in(self._fresh_run_path())

    @property
    def dashboard_ports(self) -> Mapping[str, int]:
        """Replica name -> port of its page; grows with the job."""
        return {} if self._pages is None else self._pages.known

    @property
    def controller(self) -> str:
        """What is emulated: "operator 1.9.4"."""
        return "Trainer v2 with JobSet" if self.job.kind.is_job_set else f"operator {self.version}"

    @property
    def leader(self) -> str:
        """"chief-0": the replica whose log is the job's."""
        return next((replica_name(t, i) for t, i in replicas(self.job) if is_leader(self.job, t, i)), "")

    @property
    def leader_is_keelsons(self) -> bool:
        """Whether the leader is Keelson's, so that its files show the progress of training."""
        return os.path.basename(self._leader_argv(self._planner)[0]) in PROGRAMS

    @property
    def servers_are_keelsons(self) -> bool:
        return self.job.replicas("PS") > 0 and self.plan(self.job, "PS", 0).main.is_keelsons

    def plan(self, job: TrainingJob, replica_type: str, index: int) -> PodPlan:
        return self._planner.plan(job, self._addresses.of(job), replica_type, index)

    def check(self, job: TrainingJob) -> None:
        """Every replica of `job` can be run."""
        for replica_type, index in replicas(job):
            self.plan(job, replica_type, index)

    def new_warnings(self) -> List[str]:
        """The warnings that were not returned before."""
        all_warnings = [*self._warnings, *self._planner.warnings]
        new = all_warnings[self._told_warnings :]
        self._told_warnings = len(all_warnings)
        return new

    def _fresh_run_path(self) -> str:
        return fresh_run_path(os.path.join(REPOSITORY, "runs"), self.job.name)

    def _plan_in(self, run_path: str) -> None:
        """Plans every replica, with its directories there."""
        self.run_dir = RunDirectory(os.path.abspath(run_path))
        settings = _settings(self._options, self._extra, self.manifest, self.run_dir)
        self.model_dir = self._choose_model_dir(self._options, settings)
        own = {"model_dir": self.model_dir, "job_token_file": self.run_dir.job_token}
        claims = {**settings.claims, **self._model_claim()}
        settings = replace(settings, flags={**settings.flags, **own}, claims=claims)
        self._planner = PodPlanner(self.manifest.objects, settings, self.version, self._pages)
        self.check(self.job)

    def _choose_model_dir(self, options: argparse.Namespace, settings: LocalSettings) -> str:
        """The user's directory; the manifest's if it is in a claim that the user gave; otherwise the
        run's."""
        if options.model_dir:
            return os.path.abspath(options.model_dir)
        planner = PodPlanner(self.manifest.objects, settings, self.version)
        for argument in self._leader_argv(planner) if options.pvc else ():
            flag, _, path = argument.partition("=")
            if flag == "--model_dir" and any(lies_in(path, claim) for claim in settings.claims.values()):
                return path
        return self.run_dir.model_dir

    def _model_claim(self) -> Mapping[str, str]:
        """The claim that is the leader's --model_dir in the manifest: scripts find the model there."""
        for spec in self.job.replica_specs.values():
            if not is_leader(self.job, spec.type, 0):
                continue
            path = (flag_value(spec.container.args, "model_dir") or "").rstrip("/")
            mounted = {m.volume for m in spec.container.mounts if m.path.rstrip("/") == path and not m.sub_path}
            volumes = [v for v in spec.volumes if v.name in mounted and v.kind == "persistentVolumeClaim"]
            return {volume.source: self.model_dir for volume in volumes}
        return {}

    def _leader_argv(self, planner: PodPlanner) -> Tuple[str, ...]:
        for replica_type, index in replicas(self.job):
            if is_leader(self.job, replica_type, index):
                return planner.plan(self.job, self._addresses.of(self.job), replica_type, index).main.argv
        return ("",)


def _address_source(
    options: argparse.Namespace, job: TrainingJob, reservations: Reservations
) -> AddressSource:
    if options.loopback_aliases:
        return LoopbackAliases(reservations)
    return OwnHosts(reservations) if job.kind.wants_own_hosts else FreePorts(reservations)


def _check_controller(options: argparse.Namespace, job: TrainingJob) -> None:
    """Refuses what is said to the training operator where it does not run the job."""
    flags = {"--operator_version": options.operator_version, "--strict_emulation": options.strict_emulation}
    for flag, value in flags.items():
        if job.kind.is_job_set and value:
            raise InputError(f"{flag}: expected a job of the training operator, found the {job.kind} {job.name}")


def _check_paths(options: argparse.Namespace) -> None:
    """Reports files that every role would miss once, before any starts."""
    if options.data_dir is not None and not os.path.isdir(options.data_dir):
        raise InputError(f"--data_dir {options.data_dir}: no such directory")
    for flag in ("config", "auth_token_file"):
        path = getattr(options, flag)
        if path is not None and path != CONFIG_FROM_SCRIPT and not os.path.isfile(path):
            raise InputError(f"--{flag} {path}: no such file")
    for flag in ("model_dir", "run_dir"):
        path = getattr(options, flag)
        if path and os.path.exists(path) and not os.path.isdir(path):
            raise InputError(f"--{flag} {path}: expected a directory")


def _read(options: argparse.Namespace) -> Manifest:
    wanted = {"PS": options.ps, "Worker": options.workers}
    return read_manifest(
        options.manifests,
        ReadOptions(
            parameters=dict(options.param),
            replicas={replica_type: count for replica_type, count in wanted.items() if count is not None},
            version=options.operator_version,
            job_name=options.job,
            honour_misplaced_policies=not options.strict_emulation,
        ),
    )


def _flag_warnings(options: argparse.Namespace, job: TrainingJob) -> List[str]:
    warnings = []
    if options.gpus is not None and not _wants_gpus(job):
        warnings.append("--gpus: no replica has a limit of nvidia.com/gpu, all see every GPU")
    left_out = Permissions(_images(options), options.run_commands).left_out(job)
    if left_out:
        warnings.append(f"left out without --run_commands: {left_out}")
    return warnings


def _settings(
    options: argparse.Namespace, extra: Sequence[str], manifest: Manifest, run_dir: RunDirectory
) -> LocalSettings:
    paths = {flag: getattr(options, flag) for flag in ("data_dir", "config", "auth_token_file")}
    flags = {flag: os.path.abspath(path) for flag, path in paths.items() if path is not None}
    if options.config == CONFIG_FROM_SCRIPT:
        flags["config"] = CONFIG_FROM_SCRIPT
    if options.training_steps is not None:
        flags["training_steps"] = str(options.training_steps)
    training_flags = {"device": options.device, "precision": options.precision}
    gpus = options.gpus
    if gpus is None and _wants_gpus(manifest.job):
        gpus = detect_gpus()
    return LocalSettings(
        images=_images(options),
        volumes_dir=run_dir.volumes_dir,
        working_dir=REPOSITORY,
        cores=len(os.sched_getaffinity(0)),
        gpus=gpus,
        flags=flags,
        training_flags={flag: value for flag, value in training_flags.items() if value is not None},
        extra_args=tuple(extra),
        claims=_claims(options, manifest),
        run_commands=options.run_commands,
    )


def _pages(options: argparse.Namespace, reservations: Reservations) -> Optional[DashboardPorts]:
    """The ports of the pages; None: no page is served."""
    if options.dashboard_port == NO_DASHBOARD:
        return None
    return DashboardPorts(reservations, options.dashboard_port)


def _images(options: argparse.Namespace) -> ImageMap:
    try:
        return ImageMap.parse(options.image, options.bin_dir)
    except ValueError as error:
        raise InputError(f"--image: {error}") from error


def _claims(options: argparse.Namespace, manifest: Manifest) -> Mapping[str, str]:
    mounted = {
        volume.source
        for spec in manifest.job.replica_specs.values()
        for volume in spec.volumes
        if volume.kind == "persistentVolumeClaim"
    }
    claims = {}
    for claim, directory in options.pvc:
        if claim not in mounted:
            known = f"expected one of {', '.join(sorted(mounted))}" if mounted else "there is none at all"
            raise InputError(
                f'--pvc {claim}={directory}: no replica has a volume of the claim "{claim}", {known}'
            )
        claims[claim] = os.path.abspath(directory)
    return claims


def _wants_gpus(job: TrainingJob) -> bool:
    return any(gpu_limit(spec) for spec in job.replica_specs.values())
