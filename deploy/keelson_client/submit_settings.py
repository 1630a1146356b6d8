"""The flags of `submit` -> JobSettings."""

import argparse

from .command_line import KINDS
from .errors import InputError
from .options import parse_mount, parse_pairs, parse_toleration, read_config
from .settings import MODEL_DIR, ROLES, JobSettings, Resources, default_servers

_LOCAL_IMAGE = "keelson:latest"


def settings_from(options: argparse.Namespace) -> JobSettings:
    """InputError names the flag."""
    _check_combinations(options)
    kind = KINDS[options.kind]
    return JobSettings(
        name=options.name,
        image=options.image or _LOCAL_IMAGE,
        namespace=options.namespace,
        kind=kind,
        ps=default_servers(kind) if options.ps is None else options.ps,
        workers=options.workers,
        evaluator=options.evaluator,
        gpus=options.gpus,
        config=read_config(options.config) if options.config else "",
        model_claim=parse_mount("--pvc", options.pvc, MODEL_DIR) if options.pvc else None,
        model_subdirectory=options.model_subdir,
        data_claim=parse_mount("--data_pvc", options.data_pvc, "/data") if options.data_pvc else None,
        environment=parse_pairs("--env", options.env),
        secrets=tuple(parse_mount("--secret", text, "/secrets/{name}") for text in options.secret),
        resources={
            role: Resources(getattr(options, f"{role}_cpu"), getattr(options, f"{role}_memory"))
            for role in ROLES
        },
        training_steps=options.training_steps,
        dynamic_workers=options.dynamic_workers,
        disruption_budget=options.disruption_budget,
        restart_policy=options.restart_policy,
        clean_pod_policy=options.clean_pod_policy,
        ttl_seconds=options.ttl,
        deadline_seconds=options.deadline,
        backoff_limit=options.backoff_limit,
        node_selector=parse_pairs("--node_selector", options.node_selector),
        tolerations=tuple(parse_toleration("--toleration", text) for text in options.toleration),
        service_account=options.service_account,
        image_pull_secrets=tuple(options.image_pull_secret),
        dashboard=options.dashboard,
        auth_secret=options.auth_secret,
        job_secret=options.job_secret,
        arguments=tuple(options.role_arguments),
    )


def _check_combinations(options: argparse.Namespace) -> None:
    if not options.image and not options.local:
        raise InputError("--image: expected an image that the cluster can pull, found none")
    if options.local and options.dry_run:
        raise InputError("--local: not with --dry_run; tfjob_local.py has a --dry_run of its own")
    if options.local_flag and not options.local:
        raise InputError("--local_flag: only with --local")
    waits = options.follow is not False or options.wait is not None
    if options.follow and options.wait:
        raise InputError("--wait: not with --follow, which waits for the end of the job")
    for flag, given in (("--timeout", options.timeout), ("--delete_after", options.delete_after)):
        if given and not waits:
            raise InputError(f"{flag}: nothing is waited for with --no_follow; give --wait CONDITION")
    if options.resubmit and not waits:
        raise InputError("--resubmit: nothing is waited for with --no_follow; give --wait CONDITION")
    if options.resubmit and options.wait == "Failed":
        raise InputError("--resubmit: not with --wait Failed")
    if options.resubmit and not options.pvc:
        raise InputError("--resubmit: the model is lost with the chief's pod; give --pvc CLAIM")
    if options.delete_after and options.wait not in (None, "Succeeded", "Failed"):
        raise InputError(f"--delete_after: the job has not ended when it is {options.wait}")
