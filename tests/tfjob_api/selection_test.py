"""Which document is the job; other jobs are refused with what to do."""

from support import ManifestTest, manifest, replica


class SelectionTest(ManifestTest):
    BOTH = manifest(replica("Worker"), name="a") + "---\n" + manifest(replica("Worker"), name="b")

    def test_by_name(self):
        self.assertEqual(self.read(self.BOTH, job_name="b").job.name, "b")

    def test_the_others_are_not_objects(self):
        self.assertEqual(self.read(self.BOTH, job_name="b").objects.others, ())

    def test_by_the_start_of_a_generated_name(self):
        text = self.BOTH.replace("name: b", "generateName: b-")
        self.assertRegex(self.read(text, job_name="b-").job.name, "^b-.....$")

    def test_several(self):
        self.assert_refused(self.BOTH, "expected one job, found a, b; choose one with --job NAME")

    def test_several_of_one_name(self):
        text = self.BOTH.replace("name: b", "name: a")
        for job_name in ("", "a"):
            self.assert_refused(text, "expected one job, found a, a", job_name=job_name)

    def test_none_of_that_name(self):
        self.assert_refused(self.BOTH, 'expected a TFJob, a PyTorchJob or a TrainJob named "c", found a, b', job_name="c")
        self.assert_refused(
            "kind: TFJob\n", 'expected a TFJob, a PyTorchJob or a TrainJob named "c", found one without a name', job_name="c"
        )


class OtherKindsTest(ManifestTest):
    def test_no_job(self):
        self.assert_refused("kind: Pod\n", "expected a TFJob, a PyTorchJob or a TrainJob, found Pod")
        self.assert_refused(
            "kind: Service\nmetadata: {name: s}\n---\nkind: ConfigMap\n",
            "expected a TFJob, a PyTorchJob or a TrainJob, found Service s, ConfigMap",
        )
        self.assert_refused("kind: List\nitems: []\n", "expected a TFJob, a PyTorchJob or a TrainJob, found no document")

    def test_jobs_of_other_frameworks(self):
        for kind in ("JAXJob", "MPIJob", "XGBoostJob"):
            self.assert_refused(
                f"kind: {kind}\nmetadata: {{name: j}}\n",
                f"expected a TFJob, a PyTorchJob or a TrainJob, found {kind} j: a job of another framework",
            )

    def test_what_runs_on_kubernetes_alone(self):
        for kind in ("JobSet", "Job", "StatefulSet"):
            self.assert_refused(
                f"kind: Service\n---\nkind: {kind}\nmetadata: {{name: j}}\n",
                f"expected a TFJob, a PyTorchJob or a TrainJob, found {kind} j: it runs on Kubernetes alone; write the job as a TFJob",
            )

    def test_a_runtime_alone(self):
        for kind in ("ClusterTrainingRuntime", "TrainingRuntime"):
            self.assert_refused(
                f"kind: {kind}\nmetadata: {{name: r}}\n",
                f"expected a TFJob, a PyTorchJob or a TrainJob, found {kind} r: it runs nothing by itself; add a TrainJob "
                "whose spec.runtimeRef names it",
            )

    def test_katib_experiment(self):
        self.assert_refused(
            "kind: Experiment\nmetadata: {name: e}\n"
            "spec: {trialTemplate: {trialSpec: {kind: TFJob}, trialParameters: [{name: lr}, {name: m}]}}\n",
            "expected a TFJob, a PyTorchJob or a TrainJob, found Experiment e: to run one trial, put its spec.trialTemplate.trialSpec "
            "into a file, with a metadata.name and values for ${trialParameters.lr}, ${trialParameters.m}",
        )

    def test_katib_experiment_without_parameters(self):
        for spec in (
            "",
            "spec: {trialTemplate: [1]}",
            "spec: {trialTemplate: {trialParameters: [1, {name: 2}]}}",
        ):
            self.assert_refused(
                f"kind: Experiment\n{spec}\n",
                "expected a TFJob, a PyTorchJob or a TrainJob, found Experiment: to run one trial, put its spec.trialTemplate.trialSpec "
                "into a file, with a metadata.name",
            )
