"""A replica of a job -> what its pod runs on this machine."""

import math
import os
import socket
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from tfjob_api.model import ClusterObjects, Container, ReplicaSpec, TrainingJob
from tfjob_api.naming import Addresses, annotations, labels, pod_name, replica_name
from tfjob_api.operator_pod import operator_init_containers, operator_init_variables, operator_variables
from tfjob_api.operator_version import OperatorVersion
from tfjob_api.quantity import parse_quantity

from ..gpus import detect_gpus
from .environment import EnvironmentBuilder, PodFacts, expand
from .flag_translation import flag_name, has_flag, remove_flag
from .gpu_dealer import GpuDealer
from .local_ports import LocalPorts, PageAddresses
from .permissions import Permissions
from .plan import PodPlan, ProcessPlan
from .programs import ImageMap, ProgramResolver, ResolvedProgram, Words
from .scripts import Scripts
from .service_names import ServiceNames
from .volumes import Mounts, PodVolumes, VolumePlaces


@dataclass(frozen=True)
class LocalSettings:
    """The choices of the launcher's user, beside the manifest."""

    images: ImageMap
    volumes_dir: str
    working_dir: str
    cores: int
    # The GPUs of this machine to assign; None: CUDA_VISIBLE_DEVICES is not changed.
    gpus: Optional[Tuple[str, ...]] = None
    # Flag name -> value, handed to those of Keelson's programs that take it, in place of the manifest's.
    flags: Mapping[str, str] = field(default_factory=dict)
    # The same for programs that train: workers, or the chief that runs the whole job.
    training_flags: Mapping[str, str] = field(default_factory=dict)
    # Handed to them after everything else.
    extra_args: Sequence[str] = ()
    # Claim name -> directory, in place of VOLUMES_DIR/CLAIM.
    claims: Mapping[str, str] = field(default_factory=dict)
    # Whether commands of init containers run and hostPath volumes are paths of this machine.
    run_commands: bool = False


@dataclass(frozen=True)
class _Replica:
    """The data that all steps of one plan use."""

    job: TrainingJob
    spec: ReplicaSpec
    index: int
    addresses: Addresses

    @property
    def name(self) -> str:
        return replica_name(self.spec.type, self.index)

    @property
    def alone(self) -> bool:
        return self.job.total_replicas() == 1

    @property
    def trains(self) -> bool:
        """Without servers the one that leads trains like the others."""
        if self.spec.type == self.job.kind.worker_type or self.alone:
            return True
        return self.spec.type in self.job.kind.leader_types and not self.job.replicas("PS")

    @property
    def training_replicas(self) -> int:
        leader = 0 if self.job.replicas("PS") else self.job.replicas(self.job.chief_type() or "")
        return self.job.replicas(self.job.kind.worker_type) + leader


class PodPlanner:
    """Plans pods; `warnings` has each difference from a cluster once."""

    def __init__(
        self,
        objects: ClusterObjects,
        settings: LocalSettings,
        version: OperatorVersion,
        pages: Optional[PageAddresses] = None,
    ):
        """`pages`: the ports of the dashboards; None: none is served."""
        self._objects = objects
        self._settings = settings
        self._version = version
        self.warnings: List[str] = []
        self._permissions = Permissions(settings.images, settings.run_commands)
        self._scripts = Scripts(os.path.join(settings.working_dir, "python"), settings.images.bin_dir)
        self._programs = ProgramResolver(
            settings.images, self._warn, lambda: self._machine_has_gpus, self._scripts, settings.run_commands
        )
        self._gpus = GpuDealer(settings.gpus, self._warn)
        self._ports = LocalPorts(pages, self._warn)

    def plan(self, job: TrainingJob, addresses: Addresses, replica_type: str, index: int) -> PodPlan:
        """Starts and writes nothing. PlanError: the replica cannot be run here."""
        spec = job.replica_specs[replica_type]
        replica = _Replica(job, spec, index, addresses)
        places = VolumePlaces(
            self._settings.volumes_dir, self._settings.claims, self._permissions.run_commands
        )
        volumes = PodVolumes(spec, replica.name, self._objects, places, self._warn)
        environment = EnvironmentBuilder(spec.type, self._objects, self._facts(replica), self._warn)
        names = ServiceNames(job, addresses, self._warn)
        init = [
            self._plan_init(replica, container, volumes, environment, names)
            for container in spec.init_containers
            if not container.command or self._permissions.trusts(container)
        ]
        main = self._plan_main(replica, volumes.mounts(spec.container), environment, names)
        return PodPlan(
            main=main,
            init=tuple(process for process in init if process is not None),
            restart_policy=spec.restart_policy,
            grace_seconds=spec.grace_seconds,
            # After the mounts: they add directories of their own.
            directories=volumes.directories,
            mounts=volumes.mounts(spec.container).pairs,
            waits_for=replica_name("Master", 0) if self._waits_for_master(replica) else "",
        )

    def _waits_for_master(self, replica: _Replica) -> bool:
        """The operator's init container is no program of this machine: it looks for the master's name, which the
        cluster has while the master runs."""
        return bool(operator_init_containers(replica.job, self._version, replica.spec.type))

    def _plan_main(
        self, replica: _Replica, mounts: Mounts, builder: EnvironmentBuilder, names: ServiceNames
    ) -> ProcessPlan:
        spec = replica.spec
        # Those of init containers are others, see _plan_init().
        operators = operator_variables(replica.job, replica.addresses, self._version, spec.type, replica.index)
        variables = builder.build(spec.container, operators)
        command, args = self._words(spec.type, spec.container, variables, mounts, names)
        environment = self._localise(spec.type, variables, mounts, names)
        program = self._programs.main_program(
            spec,
            Words(command, args, environment, mounts.translate(spec.container.working_dir)),
            replica.alone,
            lambda path: self._may_get_data(replica.job, path),
        )
        arguments = list(program.args)
        if replica.alone and program.keelson == "chief":
            # Operators before 1.1 set it; it would make the chief wait for others.
            environment.pop("TF_CONFIG", None)
        if program.keelson:
            arguments = self._keelson_arguments(replica, program, arguments)
            environment = self._permissions.environment_of_keelsons(spec.container, environment)
        else:
            if program.is_own_script:
                environment = self._permissions.environment_of_keelsons(spec.container, environment)
            self._prepare_foreign(replica, environment)
            self._scripts.prepare(environment, mounts.pairs)
            self._ports.prepare_page(spec, replica.name, environment)
            self._ports.prepare_metrics(variables, environment)
        self._add_limits(replica, program, arguments, environment)
        if replica.job.kind.wants_own_hosts:
            # As in a pod: worker 2 of an elastic job is the one whose host's name ends so.
            environment["HOSTNAME"] = pod_name(replica.job.name, spec.type, replica.index)
        return ProcessPlan(
            container=spec.container.name,
            argv=(program.path, *arguments),
            environment=environment,
            working_dir=self._working_dir(spec.type, spec.container, mounts, program),
            is_keelsons=program.keelson is not None,
            ends_with_job=program.keelson is not None or program.is_own_script,
        )

    @cached_property
    def _machine_has_gpus(self) -> bool:
        return bool(detect_gpus() if self._settings.gpus is None else self._settings.gpus)

    def _may_get_data(self, job: TrainingJob, path: str) -> bool:
        """The user has chosen the directory, or a config that reads what is there; or an init container may
        fill it."""
        if "config" in self._settings.flags and os.path.isdir(path) and os.listdir(path):
            return True
        containers = [init for spec in job.replica_specs.values() for init in spec.init_containers]
        if any(init.command and self._permissions.trusts(init) for init in containers):
            return True
        return any(lies_in(path, claim) for claim in self._settings.claims.values())

    def _plan_init(
        self,
        replica: _Replica,
        container: Container,
        volumes: PodVolumes,
        builder: EnvironmentBuilder,
        names: ServiceNames,
    ) -> Optional[ProcessPlan]:
        replica_type = replica.spec.type
        variables = builder.build(container, operator_init_variables(replica.job, container, replica.index))
        mounts = volumes.mounts(container)
        command, args = self._words(replica_type, container, variables, mounts, names)
        program = self._programs.init_program(replica_type, container, command, args)
        if program is None:
            return None
        environment = self._localise(replica_type, variables, mounts, names)
        self._add_own_path(environment)
        return ProcessPlan(
            container=container.name,
            argv=(program.path, *program.args),
            environment=environment,
            working_dir=self._working_dir(replica_type, container, mounts, program),
        )

    @staticmethod
    def _words(
        replica_type: str,
        container: Container,
        variables: Mapping[str, str],
        mounts: Mounts,
        names: ServiceNames,
    ) -> Tuple[List[str], List[str]]:
        """command and args with their references resolved, in paths and names of this machine."""

        def resolve(words: Sequence[str], what: str) -> List[str]:
            where = f"{replica_type}: {what}"
            return [names.translate(mounts.translate(expand(word, variables)), where) for word in words]

        return resolve(container.command, "command"), resolve(container.args, "args")

    @staticmethod
    def _localise(
        replica_type: str, variables: Mapping[str, str], mounts: Mounts, names: ServiceNames
    ) -> Dict[str, str]:
        """Paths and service names of this machine; TF_CONFIG has them already."""
        return {
            name: value
            if name == "TF_CONFIG"
            else names.translate(mounts.translate(value), f"{replica_type}: env {name}")
            for name, value in variables.items()
        }

    def _keelson_arguments(
        self, replica: _Replica, program: ResolvedProgram, args: List[str]
    ) -> List[str]:
        """Each flag once: the programs refuse a repeated one."""
        flags = {flag: value for flag, value in self._settings.flags.items() if flag in program.flags}
        if replica.trains:
            flags.update(self._settings.training_flags)
        # In a pod termination_log is a file for the kubelet; here the manifest would choose one of the user's.
        for flag in (*flags, "termination_log"):
            args = _without(args, flag)
        args += [f"--{flag}={value}" for flag, value in flags.items()]
        for argument in self._settings.extra_args:
            name = flag_name(argument)
            args = _without(args, name) if name else args
        args += self._settings.extra_args
        return self._ports.localise(
            replica.job, replica.spec, replica.name, str(program.keelson), args, replica.addresses
        )

    def _prepare_foreign(self, replica: _Replica, environment: Dict[str, str]) -> None:
        self._add_own_path(environment)
        if "job_token_file" in self._settings.flags:
            environment["KEELSON_JOB_TOKEN_FILE"] = self._settings.flags["job_token_file"]
        if self._settings.extra_args:
            self._warn(
                f"{replica.spec.type}: runs the manifest's own command, "
                f"without {' '.join(self._settings.extra_args)}"
            )

    def _add_own_path(self, environment: Dict[str, str]) -> None:
        """A script of the manifest finds Keelson's programs as it does in the image."""
        path = environment.get("PATH") or os.environ.get("PATH") or os.defpath
        environment["PATH"] = os.pathsep.join([self._settings.images.bin_dir, path])

    def _add_limits(
        self, replica: _Replica, program: ResolvedProgram, arguments: List[str], environment: Dict[str, str]
    ) -> None:
        """Workers of one machine share its cores, and none exceeds its own limit."""
        share = replica.trains and not replica.alone
        limit = self._cpu_limit(replica.spec)
        threads = max(1, self._settings.cores // max(1, replica.training_replicas)) if share else None
        if limit is not None:
            threads = min(threads or self._settings.cores, limit)
        if threads is not None:
            if "compute_threads" in program.flags and not has_flag(arguments, "compute_threads"):
                arguments.append(f"--compute_threads={threads}")
            if "OMP_NUM_THREADS" not in os.environ:
                environment.setdefault("OMP_NUM_THREADS", str(threads))
        devices = self._gpus.visible_devices(replica.job, replica.spec.type, replica.index)
        if devices is not None:
            environment.setdefault("CUDA_VISIBLE_DEVICES", devices)

    @staticmethod
    def _cpu_limit(spec: ReplicaSpec) -> Optional[int]:
        text = spec.container.limits.get("cpu")
        return None if text is None else max(1, math.ceil(parse_quantity(text)))

    def _working_dir(
        self, replica_type: str, container: Container, mounts: Mounts, program: ResolvedProgram
    ) -> str:
        if program.directory:
            return program.directory
        wanted = container.working_dir
        local = mounts.translate(wanted)
        if not wanted or local == wanted and program.keelson:
            # Keelson's own lies in the image, with configs/ in it; here it is the repository.
            return self._settings.working_dir
        if local != wanted or os.path.isdir(wanted):
            return local
        instead = self._settings.working_dir
        self._warn(f"{replica_type}: workingDir: no directory {wanted} here, {instead} instead")
        return instead

    def _facts(self, replica: _Replica) -> PodFacts:
        job, spec = replica.job, replica.spec
        own_address = replica.addresses[spec.type][replica.index]
        ip = own_address.rpartition(":")[0]
        return PodFacts(
            fields={
                "metadata.name": pod_name(job.name, spec.type, replica.index),
                "metadata.namespace": job.namespace,
                "metadata.uid": str(uuid.uuid4()),
                "spec.nodeName": socket.gethostname(),
                "spec.serviceAccountName": "default",
                "status.hostIP": "127.0.0.1",
                "status.podIP": ip,
                "status.podIPs": ip,
            },
            labels={**spec.labels, **labels(job, spec.type, replica.index, self._version)},
            annotations={**spec.annotations, **annotations(job, replica.index)},
            cores=self._settings.cores,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


def lies_in(path: str, directory: str) -> bool:
    return os.path.commonpath([os.path.abspath(path), directory]) == directory


def _without(args: List[str], flag: str) -> List[str]:
    """The arguments without this flag, and without the one that cannot stand beside it."""
    opposites = {"training_steps": "epochs", "epochs": "training_steps"}
    return remove_flag(remove_flag(args, flag), opposites.get(flag, flag))
