"""OpenShift Templates: what `oc process` makes of them, and clear errors where it makes nonsense."""

import unittest

from support import ManifestTest
from tfjob_api.template import generate

TEMPLATE = """\
apiVersion: {api_version}
kind: Template
metadata: {{name: training}}
labels:
  app: ${{JOB_NAME}}
parameters:
- name: JOB_NAME
  required: true
- name: IMAGE_NAME
  displayName: The image
  value: keelson:latest
- name: WORKERS
  value: "2"
- name: SUFFIX
  generate: expression
  from: "[a-z0-9]{{5}}"
{parameters}objects:
- apiVersion: kubeflow.org/v1
  kind: TFJob
  metadata:
    name: ${{JOB_NAME}}
    namespace: fixed
    labels: {{app: own, tier: training}}
  spec:
    tfReplicaSpecs:
      Worker:
        replicas: ${{{{WORKERS}}}}
        template:
          spec:
            containers:
            - name: tensorflow
              image: ${{IMAGE_NAME}}
              args: ["--run=${{JOB_NAME}}-${{SUFFIX}}", "--plain=$HOME $(POD)"{args}]
- apiVersion: v1
  kind: ConfigMap
  metadata: {{name: "${{JOB_NAME}}-config"}}
  data:
    ${{JOB_NAME}}.txt: "workers ${{WORKERS}}"
"""


def template(api_version="template.openshift.io/v1", parameters="", args=""):
    return TEMPLATE.format(api_version=api_version, parameters=parameters, args=args)


class ProcessedTest(ManifestTest):
    def process(self, text=None, **parameters):
        return self.read(text or template(), parameters={"JOB_NAME": "mnist", **parameters})

    def test_both_api_versions(self):
        for api_version in ("v1", "template.openshift.io/v1"):
            self.assertEqual(self.process(template(api_version)).job.name, "mnist")

    def test_values_and_generated_values(self):
        container = self.process().job.replica_specs["Worker"].container
        self.assertEqual(container.image, "keelson:latest")
        self.assertRegex(container.args[0], r"^--run=mnist-[a-z0-9]{5}$")

    def test_given_values_win(self):
        job = self.process(IMAGE_NAME="other:1", WORKERS="5", SUFFIX="x").job
        self.assertEqual(job.replicas("Worker"), 5)
        container = job.replica_specs["Worker"].container
        self.assertEqual((container.image, container.args[0]), ("other:1", "--run=mnist-x"))

    def test_what_is_no_reference_stays(self):
        self.assertEqual(self.process().job.replica_specs["Worker"].container.args[1], "--plain=$HOME $(POD)")

    def test_values_are_not_searched_for_references(self):
        args = self.process(SUFFIX="${WORKERS}").job.replica_specs["Worker"].container.args
        self.assertEqual(args[0], "--run=mnist-${WORKERS}")

    def test_keys_and_other_objects(self):
        objects = self.process().objects
        self.assertEqual(objects.config_maps, {"mnist-config": {"mnist.txt": b"workers 2"}})

    def test_raw_references_keep_the_type(self):
        text = (
            template()
            .replace("replicas: ${{WORKERS}}", "replicas: 1")
            .replace("image: ${IMAGE_NAME}", "image: i\n              command: ${{WORKERS}}")
        )
        worker = self.process(text, WORKERS='["sh", "-c"]').job.replica_specs["Worker"]
        self.assertEqual(worker.container.command, ("sh", "-c"))

    def test_raw_reference_to_text_is_text(self):
        text = template().replace("image: ${IMAGE_NAME}", "image: ${{IMAGE_NAME}}")
        self.assertEqual(self.process(text).job.replica_specs["Worker"].container.image, "keelson:latest")

    def test_labels_of_the_template_win(self):
        labels = self.process().document["metadata"]["labels"]
        self.assertEqual(labels, {"app": "mnist", "tier": "training"})

    def test_labels_of_objects_without_metadata(self):
        text = template() + "- {kind: Thing}\n- {kind: Other, metadata: {name: '${JOB_NAME}'}}\n"
        self.assertEqual(self.process(text).objects.others, ("Thing", "Other mnist"))

    def test_fixed_namespace_is_dropped(self):
        self.assertEqual(self.process().job.namespace, "default")

    def test_namespace_by_parameter_stays(self):
        text = template(parameters="- {name: NAMESPACE, value: team}\n").replace(
            "namespace: fixed", "namespace: ${NAMESPACE}"
        )
        self.assertEqual(self.process(text).job.namespace, "team")

    def test_empty_values_where_none_is_required(self):
        text = template(parameters="- {name: EXTRA}\n", args=', "--extra=${EXTRA}"')
        self.assertEqual(self.process(text).job.replica_specs["Worker"].container.args[2], "--extra=")


class RefusedTest(ManifestTest):
    def refuse(self, text, expected, **parameters):
        self.assert_refused(text, expected, parameters={"JOB_NAME": "mnist", **parameters})

    def test_missing_required_value(self):
        what = "parameters[0]: Required value: parameter JOB_NAME is required and must be specified"
        self.assert_refused(template(), what)
        self.refuse(template(), what, JOB_NAME="")

    def test_unknown_parameter(self):
        self.refuse(
            template(),
            'parameters: no parameter "WORKER", found IMAGE_NAME, JOB_NAME, SUFFIX, WORKERS',
            WORKER="3",
        )

    def test_parameter_without_template(self):
        self.assert_refused(
            "kind: TFJob\n",
            'parameters: no parameter "WORKERS", found no Template',
            parameters={"WORKERS": "3"},
        )

    def test_undefined_reference(self):
        what = (
            "is no parameter of the Template, expected one of IMAGE_NAME, JOB_NAME, SUFFIX, WORKERS "
            "(a variable of a shell is written $"
        )
        where = "objects[0].spec.tfReplicaSpecs.Worker"
        self.refuse(
            template(args=', "${HOME}/x"'),
            f"{where}.template.spec.containers[0].args[2]: ${{HOME}} {what}HOME here)",
        )
        self.refuse(
            template().replace("${{WORKERS}}", "${{WORKER}}"),
            f"{where}.replicas: ${{WORKER}} {what}WORKER here)",
        )

    def test_raw_reference_within_text(self):
        self.refuse(
            template().replace("image: ${IMAGE_NAME}", "image: repo/${{IMAGE_NAME}}"),
            "objects[0].spec.tfReplicaSpecs.Worker.template.spec.containers[0].image: ${{IMAGE_NAME}} must "
            "be the whole value; within text it is ${IMAGE_NAME}",
        )

    def test_text_where_a_number_is_expected(self):
        self.refuse(
            template().replace("${{WORKERS}}", "${WORKERS}"),
            'spec.tfReplicaSpecs.Worker.replicas: expected a whole number >= 0, found "2"; without quotes '
            "(in a Template: ${{NAME}})",
        )
        self.refuse(
            template(),
            'spec.tfReplicaSpecs.Worker.replicas: expected a whole number >= 0, found "two"',
            WORKERS="two",
        )

    def test_parameters(self):
        for entry, expected in (
            ("{value: x}", "parameters[4].name: Required value"),
            ("{name: a-b}", 'parameters[4].name: expected letters, digits and _, found "a-b"'),
            ("{name: WORKERS}", 'parameters[4].name: second parameter "WORKERS"'),
            ("{name: O, value: 2}", "parameters[4].value: expected a string, found 2; quote it"),
            ("{name: O, required: 1}", "parameters[4].required: expected true or false, found 1"),
            ("{name: O, generate: uuid}", 'parameters[4].generate: expected one of expression, found "uuid"'),
            ("{name: O, generate: expression}", "parameters[4].from: Required value"),
            (
                "{name: O, generate: expression, from: '[z-a]{3}'}",
                "parameters[4].from: invalid range specified: z-a",
            ),
        ):
            with self.subTest(entry):
                self.refuse(template(parameters=f"- {entry}\n"), expected)

    def test_no_objects(self):
        self.refuse(
            "apiVersion: v1\nkind: Template\nparameters: [{name: JOB_NAME}]\n",
            "objects: Required value: the Template has no objects",
        )

    def test_template_of_another_api(self):
        self.assert_refused(
            "apiVersion: example.org/v1\nkind: Template\nmetadata: {name: t}\n",
            "expected a TFJob, a PyTorchJob or a TrainJob, found Template t",
        )


class GenerateTest(unittest.TestCase):
    def test_expressions(self):
        for expression, pattern in (
            ("test[0-9]{1}x", r"test[0-9]x"),
            ("[0-1]{8}", r"[01]{8}"),
            ("0x[A-F0-9]{4}", r"0x[A-F0-9]{4}"),
            ("[a-zA-Z0-9]{255}", r"[a-zA-Z0-9]{255}"),
            ("[abc]{9}", r"[abc]{9}"),
            (r"[\d]{5}-[\w]{5}", r"[0-9]{5}-[a-zA-Z0-9_]{5}"),
            (r"[\a]{40}", r"[a-zA-Z0-9]{40}"),
            (r"[\A]{40}", r"[^a-zA-Z0-9\s]{40}"),
            ("no expression", "no expression"),
            ("[a-z]", r"\[a-z\]"),
        ):
            with self.subTest(expression):
                self.assertRegex(generate(expression), f"^{pattern}$")

    def test_every_character_of_a_range_occurs(self):
        self.assertEqual(set("".join(generate("[0-2]{255}") for _ in range(4))), set("012"))

    def test_two_values_differ(self):
        self.assertNotEqual(generate("[a-z0-9]{40}"), generate("[a-z0-9]{40}"))

    def test_errors(self):
        for expression, expected in (
            ("[a-z]{0}", "range must be within [1-255] characters (0)"),
            ("[a-z]{256}", "range must be within [1-255] characters (256)"),
            ("[z-a]{3}", "invalid range specified: z-a"),
            (r"[\q]{3}", r"malformed expression syntax: [\q]"),
        ):
            with self.assertRaises(ValueError) as caught:
                generate(expression)
            self.assertEqual(str(caught.exception), expected)
