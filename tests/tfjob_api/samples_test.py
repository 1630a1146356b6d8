"""Jobs in the shapes that users bring along: each is read, with the warnings that it deserves."""

from support import ManifestTest

SPECS = "spec.tfReplicaSpecs"
PS_LEAK = (
    "spec.runPolicy.cleanPodPolicy: None (the default) leaves a PS that does not end by itself running after "
    "the job; Running is usual"
)


def overwritten(replica_type, found="OnFailure"):
    return (
        f"{SPECS}.{replica_type}.template.spec.restartPolicy: the operator overwrites {found} with Never; "
        f"set {SPECS}.{replica_type}.restartPolicy"
    )


def read_as_v1(version):
    return f"apiVersion: kubeflow.org/{version} is read as kubeflow.org/v1; clusters of today refuse it"


CHIEF_PS_WORKERS = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: digits
spec:
  tfReplicaSpecs:
    Chief: &replica
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/digits:1
              command: [python, /var/digits.py]
    PS:
      <<: *replica
    Worker:
      <<: *replica
      replicas: 2
"""

PS_WORKERS_OF_2018 = """\
apiVersion: "kubeflow.org/v1beta1"
kind: "TFJob"
metadata:
  name: "digits"
spec:
  cleanPodPolicy: None
  tfReplicaSpecs:
    PS:
      replicas: 2
      template:
        spec:
          restartPolicy: OnFailure
          containers:
            - name: tensorflow
              image: example.org/digits:1
    Worker:
      replicas: 4
      template:
        spec:
          restartPolicy: OnFailure
          containers:
            - name: tensorflow
              image: example.org/digits:1
"""

SINGLE_WORKER_WITH_CLAIM = """\
apiVersion: v1
kind: PersistentVolume
metadata: {name: events}
spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/data}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: events, namespace: kubeflow}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  generateName: summaries-
  namespace: kubeflow
spec:
  runPolicy:
    cleanPodPolicy: None
  tfReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/summaries:1
              command: [python, /var/summaries.py, --log_dir=/train/logs, --learning_rate=0.01]
              volumeMounts:
                - mountPath: /train
                  name: training
          volumes:
            - name: training
              persistentVolumeClaim:
                claimName: events
"""

WORKERS_ON_FAILURE = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: simple
  namespace: kubeflow
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/digits:1
              command: [python, /var/digits.py, --batch_size=150]
"""

ESTIMATOR_WORKERS = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: distributed-training}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 3
      restartPolicy: Never
      template:
        metadata:
          annotations: {scheduling.k8s.io/group-name: distributed-training}
        spec:
          containers:
            - name: tensorflow
              image: example.org/keras-to-estimator:1
              volumeMounts: [{mountPath: /tf_models, name: models}]
          volumes:
            - name: models
              hostPath: {path: /tmp/models}
"""

GPU_WORKERS_WITH_SHARED_CLAIM = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: multi-worker}
spec:
  runPolicy: {cleanPodPolicy: None}
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/multi-worker:1
              resources: {limits: {nvidia.com/gpu: 1}}
              volumeMounts: [{mountPath: /train, name: training}]
          volumes:
            - name: training
              persistentVolumeClaim: {claimName: strategy-volume}
"""

RUN_CONFIG_WITH_EVALUATOR = """\
{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "run-config", "namespace": "test"},
 "spec": {"cleanPodPolicy": "All", "tfReplicaSpecs": {
  "Chief": {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers":
    [{"name": "tensorflow", "image": "example.org/test-server:1"}]}}},
  "PS": {"replicas": 2, "restartPolicy": "Never", "template": {"spec": {"containers":
    [{"name": "tensorflow", "image": "example.org/test-server:1"}]}}},
  "Worker": {"replicas": 2, "restartPolicy": "Never", "template": {"spec": {"containers":
    [{"name": "tensorflow", "image": "example.org/test-server:1"}]}}},
  "Evaluator": {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers":
    [{"name": "tensorflow", "image": "example.org/test-server:1"}]}}}}}}
"""

GPU_WITH_POLICY_IN_POD_TEMPLATE = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: benchmark}
spec:
  tfReplicaSpecs:
    PS:
      replicas: 1
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/benchmark:cpu
              args: [python, benchmark.py, --variable_update=parameter_server, --device=cpu]
              ports: [{containerPort: 2222, name: tfjob-port}]
              resources: {limits: {cpu: '1'}}
              workingDir: /opt/benchmarks
          restartPolicy: OnFailure
    Worker:
      replicas: 1
      template:
        spec:
          containers:
            - name: tensorflow
              image: example.org/benchmark:gpu
              args: [python, benchmark.py, --variable_update=parameter_server, --device=gpu]
              ports: [{containerPort: 2222, name: tfjob-port}]
              resources: {limits: {nvidia.com/gpu: 1}}
              workingDir: /opt/benchmarks
          restartPolicy: OnFailure
"""

ELASTIC = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: elastic}
spec:
  enableDynamicWorker: true
  runPolicy: {cleanPodPolicy: Running}
  tfReplicaSpecs:
    PS: &replica
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          serviceAccountName: resolver
          containers:
            - name: tensorflow
              image: example.org/elastic:1
              env:
                - {name: GRPC_FAIL_FAST, value: use_caller}
                - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    Worker: {<<: *replica, replicas: 4}
    Chief: {<<: *replica, replicas: 1}
"""

RECOMMENDER_WITH_OWN_TF_CONFIG = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: recommender}
spec:
  tfReplicaSpecs:
    PS:
      replicas: 4
      restartPolicy: Never
      template: &template
        spec:
          containers:
            - name: tensorflow
              image: example.org/recommender:1
              args: [--model_dir=/model]
              env: [{name: TF_CONFIG, value: '{"cluster": {}}'}]
    Worker: {replicas: 4, restartPolicy: Never, template: *template}
"""

LEGACY_MASTER = """\
apiVersion: kubeflow.org/v1alpha2
kind: TFJob
metadata: {name: legacy}
spec:
  ttlSecondsAfterFinished: 100
  tfReplicaSpecs:
    MASTER:
      replicas: 1
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, image: i, ports: [{containerPort: 2222}]}]}}
    ps:
      replicas: 1
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, image: i}]}}
"""

OPENSHIFT_TEMPLATE = """\
apiVersion: v1
kind: Template
metadata:
  name: train
  annotations: {description: Distributed training, tags: tensorflow}
labels: {template: train}
parameters:
  - {name: JOB_NAME, displayName: Job name, required: true}
  - {name: IMAGE_NAME, required: true}
  - {name: WORKERS, value: "1"}
  - {name: PS, value: "1"}
objects:
  - apiVersion: kubeflow.org/v1
    kind: TFJob
    metadata: {name: "${JOB_NAME}"}
    spec:
      tfReplicaSpecs:
        Worker:
          replicas: ${{WORKERS}}
          template:
            spec:
              restartPolicy: OnFailure
              containers:
                - {name: tensorflow, image: "${IMAGE_NAME}", args: ["--name=${JOB_NAME}"]}
        PS:
          replicas: ${{PS}}
          template:
            spec:
              restartPolicy: OnFailure
              containers:
                - {name: tensorflow, image: "${IMAGE_NAME}"}
"""


class SampleTest(ManifestTest):
    def assert_sample(self, text, replicas, *warnings, **options):
        read = self.read(text, **options)
        self.assertEqual({t: spec.replicas for t, spec in read.job.replica_specs.items()}, replicas)
        self.assertEqual(list(read.warnings), list(warnings))
        return read

    def test_chief_ps_workers(self):
        self.assert_sample(CHIEF_PS_WORKERS, {"Chief": 1, "PS": 1, "Worker": 2}, PS_LEAK)

    def test_ps_and_workers_of_2018(self):
        read = self.assert_sample(
            PS_WORKERS_OF_2018,
            {"PS": 2, "Worker": 4},
            read_as_v1("v1beta1"),
            overwritten("PS"),
            overwritten("Worker"),
            PS_LEAK.replace(" (the default)", ""),
        )
        self.assertIsNone(read.job.chief_type())
        self.assertEqual(read.job.replica_specs["Worker"].restart_policy, "Never")

    def test_single_worker_with_claim(self):
        read = self.assert_sample(
            SINGLE_WORKER_WITH_CLAIM, {"Worker": 1}, "ignored locally: PersistentVolume events"
        )
        self.assertRegex(read.job.name, "^summaries-.....$")
        self.assertEqual((read.job.namespace, read.objects.claims), ("kubeflow", ("events",)))
        self.assertEqual(read.job.replica_specs["Worker"].volumes[0].source, "events")

    def test_workers_on_failure(self):
        self.assert_sample(WORKERS_ON_FAILURE, {"Worker": 2})

    def test_estimator_workers(self):
        worker = self.assert_sample(ESTIMATOR_WORKERS, {"Worker": 3}).job.replica_specs["Worker"]
        self.assertEqual(worker.annotations, {"scheduling.k8s.io/group-name": "distributed-training"})

    def test_gpu_workers_with_shared_claim(self):
        read = self.assert_sample(GPU_WORKERS_WITH_SHARED_CLAIM, {"Worker": 2})
        self.assertEqual(read.job.replica_specs["Worker"].container.limits, {"nvidia.com/gpu": "1"})

    def test_run_config_with_evaluator(self):
        read = self.assert_sample(
            RUN_CONFIG_WITH_EVALUATOR,
            {"Chief": 1, "PS": 2, "Worker": 2, "Evaluator": 1},
            "spec.cleanPodPolicy: taken as spec.runPolicy.cleanPodPolicy; IN THIS PLACE AN OPERATOR OF TODAY "
            "DROPS IT",
        )
        self.assertEqual(read.job.run_policy.clean_pod_policy, "All")

    def test_gpu_with_policy_in_pod_template(self):
        read = self.assert_sample(
            GPU_WITH_POLICY_IN_POD_TEMPLATE,
            {"PS": 1, "Worker": 1},
            overwritten("PS"),
            overwritten("Worker"),
            PS_LEAK,
        )
        self.assertEqual(read.job.replica_specs["PS"].container.working_dir, "/opt/benchmarks")

    def test_elastic(self):
        read = self.assert_sample(ELASTIC, {"PS": 2, "Worker": 4, "Chief": 1})
        self.assertTrue(read.job.dynamic_workers)

    def test_recommender_with_own_tf_config(self):
        self.assert_sample(
            RECOMMENDER_WITH_OWN_TF_CONFIG,
            {"PS": 4, "Worker": 4},
            *(
                f"{SPECS}.{t}.template.spec.containers: the operator's TF_CONFIG takes the place of the one "
                "in env"
                for t in ("PS", "Worker")
            ),
            PS_LEAK,
        )

    def test_legacy_master(self):
        read = self.assert_sample(
            LEGACY_MASTER,
            {"Master": 1, "PS": 1},
            read_as_v1("v1alpha2"),
        )
        self.assertEqual(read.job.run_policy.ttl_seconds_after_finished, 100)

    def test_openshift_template(self):
        read = self.assert_sample(
            OPENSHIFT_TEMPLATE,
            {"Worker": 3, "PS": 1},
            overwritten("Worker"),
            overwritten("PS"),
            PS_LEAK,
            parameters={"JOB_NAME": "digits", "IMAGE_NAME": "example.org/digits:1", "WORKERS": "3"},
        )
        self.assertEqual(read.job.name, "digits")
