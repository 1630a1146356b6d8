"""Pod templates: containers, environment, mounts, volumes, ports, resources."""

from support import ManifestTest, manifest, replica
from tfjob_api.model import (
    ContainerPort,
    EnvironmentSource,
    EnvironmentVariable,
    ObjectReference,
    Volume,
    VolumeFile,
    VolumeMount,
)

POD = "spec.tfReplicaSpecs.Worker.template.spec"
CONTAINER = f"{POD}.containers[0]"


class PodTest(ManifestTest):
    def container(self, lines, pod=""):
        return self.read_spec(manifest(replica("Worker", container=lines, pod=pod))).container

    def refuse_container(self, lines, expected, pod=""):
        self.assert_refused(manifest(replica("Worker", container=lines, pod=pod)), f"{CONTAINER}.{expected}")

    def refuse_pod(self, lines, expected):
        self.assert_refused(manifest(replica("Worker", pod=lines)), f"{POD}.{expected}")

    def assert_pod_warning(self, expected, pod="", container=""):
        self.assert_warnings(manifest(replica("Worker", pod=pod, container=container)), f"{POD}.{expected}")


class ContainerTest(PodTest):
    def test_command(self):
        container = self.container("command: [sh, -c]\nargs: ['echo $(A)']\nworkingDir: /opt")
        self.assertEqual(
            (container.command, container.args, container.working_dir), (("sh", "-c"), ("echo $(A)",), "/opt")
        )
        self.assertEqual((container.name, container.image), ("tensorflow", "keelson"))

    def test_command_that_is_no_list_of_text(self):
        self.refuse_container("args: --x=1", 'args: expected a list, found "--x=1"')
        self.refuse_container("args: [--steps, 5]", "args[1]: expected a string, found 5; quote it")
        self.refuse_container("args: [{a: b}]", "args[0]: expected a string, found a mapping")
        self.refuse_container("workingDir: 3", "workingDir: expected a string, found 3; quote it")
        self.refuse_container(
            'args: ["a\\0"]', 'args[0]: expected a string without the character NUL, found "a\\u0000"'
        )

    def test_the_one_named_tensorflow(self):
        text = manifest(replica("Worker")).replace(
            "            - name: tensorflow",
            "            - {name: proxy, image: p}\n            - name: tensorflow\n              args: [x]",
        )
        self.assertEqual(self.read_spec(text).container.args, ("x",))
        self.assert_warnings(text, f"{POD}.containers[0]: the container proxy is ignored locally")

    def test_container_names(self):
        text = manifest(replica("Worker")) + "            - {name: tensorflow, image: i}\n"
        self.assert_refused(text, f'{POD}.containers[1].name: Duplicate value: "tensorflow"')
        text = manifest(replica("Worker")) + "            - {image: i}\n"
        self.assert_refused(text, f"{POD}.containers[1].name: Required value")

    def test_init_containers(self):
        pod = (
            "initContainers:\n- {name: fetch, image: curl, command: [curl], env: [{name: A, value: b}]}\n"
            "- {name: proxy, image: p, restartPolicy: Always}\n- {name: chown, image: busybox}"
        )
        text = manifest(replica("Worker", pod=pod))
        first, second = self.read_spec(text).init_containers
        self.assertEqual((first.name, first.command, second.name), ("fetch", ("curl",), "chown"))
        self.assertEqual(first.environment, (EnvironmentVariable("A", "b"),))
        self.assert_warnings(text, f"{POD}.initContainers[1]: the sidecar proxy is ignored locally")

    def test_init_containers_without_name_or_image(self):
        self.refuse_pod("initContainers: [{image: i}]", "initContainers[0].name: Required value")
        self.refuse_pod("initContainers: [{name: i}]", "initContainers[0].image: Required value")
        self.refuse_pod(
            "initContainers: [{name: ../../x, image: i}]",
            "initContainers[0].name: expected lower case letters, digits and '-' between them, at most 63, "
            'found "../../x"',
        )
        self.refuse_pod("initContainers: [5]", "initContainers[0]: expected a mapping, found 5")

    def test_hooks_and_probes(self):
        for hook in (
            "postStart: {exec: {command: [touch, /x]}}",
            "preStop: {httpGet: {path: /end, port: 1}}",
        ):
            name = hook.split(":")[0]
            self.assert_pod_warning(
                f"containers[0].lifecycle.{name}: ignored locally", container=f"lifecycle: {{{hook}}}"
            )
        for hook in (
            "preStop: {exec: {command: [sleep, '20']}}",
            "preStop: {sleep: {seconds: 5}}",
            "preStop: {}",
        ):
            self.assert_warnings(manifest(replica("Worker", container=f"lifecycle: {{{hook}}}")))
        self.assert_pod_warning(
            "containers[0].readinessProbe: peers cannot find the pod by its name before it is ready",
            container="readinessProbe: {httpGet: {path: /, port: 1}}",
        )
        self.assert_warnings(
            manifest(replica("Worker", container="livenessProbe: {httpGet: {path: /, port: 1}}"))
        )

    def test_grace_period(self):
        self.refuse_pod(
            "terminationGracePeriodSeconds: long",
            'terminationGracePeriodSeconds: expected a whole number >= 0, found "long"',
        )

    def test_ports(self):
        ports = self.container("ports: [{containerPort: 22, name: tfjob-port, protocol: TCP}]").ports
        self.assertEqual(ports, (ContainerPort(22, "tfjob-port"),))
        for value, found in (("0", "0"), ("65536", "65536")):
            self.refuse_container(
                f"ports: [{{containerPort: {value}}}]",
                f"ports[0].containerPort: expected a port from 1 to 65535, found {found}",
            )
        self.refuse_container(
            "ports: [{name: a}]", "ports[0].containerPort: expected a port from 1 to 65535, found nothing"
        )

    def test_resources(self):
        container = self.container(
            "resources: {requests: {cpu: 0.5, memory: 1Gi}, limits: {cpu: 2, nvidia.com/gpu: 1, x.y/z: '3'}}"
        )
        self.assertEqual(container.requests, {"cpu": "0.5", "memory": "1Gi"})
        self.assertEqual(container.limits, {"cpu": "2", "nvidia.com/gpu": "1", "x.y/z": "3"})

    def test_resources_that_are_no_quantities(self):
        for value, found in (("1GB", '"1GB"'), ("lots", '"lots"'), ("''", '""')):
            self.refuse_container(
                f"resources: {{limits: {{memory: {value}}}}}",
                f"resources.limits.memory: expected a quantity such as 2, 500m or 1Gi, found {found}",
            )
        self.refuse_container(
            "resources: {limits: {cpu: true}}",
            "resources.limits.cpu: expected a string, found true; quote it",
        )
        self.refuse_container(
            "resources: {limits: {nvidia.com/gpu: 500m}}",
            'resources.limits.nvidia.com/gpu: expected a whole number, found "500m"',
        )


class EnvironmentTest(PodTest):
    def variable(self, entry):
        (variable,) = self.container(f"env: [{entry}]").environment
        return variable

    def test_values(self):
        self.assertEqual(self.variable("{name: A, value: '$(B)'}"), EnvironmentVariable("A", "$(B)"))
        self.assertEqual(self.variable("{name: A}"), EnvironmentVariable("A", ""))

    def test_sources(self):
        for source, expected in (
            ("fieldRef: {fieldPath: metadata.name}", EnvironmentVariable("A", field_path="metadata.name")),
            ("resourceFieldRef: {resource: limits.cpu}", EnvironmentVariable("A", resource="limits.cpu")),
            (
                "configMapKeyRef: {name: c, key: k, optional: true}",
                EnvironmentVariable("A", reference=ObjectReference("ConfigMap", "c", "k", True)),
            ),
            (
                "secretKeyRef: {name: s, key: k}",
                EnvironmentVariable("A", reference=ObjectReference("Secret", "s", "k")),
            ),
        ):
            self.assertEqual(self.variable(f"{{name: A, valueFrom: {{{source}}}}}"), expected)

    def test_what_has_no_meaning_locally(self):
        self.assert_pod_warning(
            "containers[0].env[0].valueFrom.resourceFieldRef.divisor: ignored locally",
            container="env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]",
        )
        text = "env: [{name: A, valueFrom: {fileKeyRef: {path: x}}}]"
        self.assert_pod_warning("containers[0].env[0].valueFrom.fileKeyRef: ignored locally", container=text)
        self.assertEqual(self.container(text).environment, ())

    def test_wrong_variables(self):
        for entry, expected in (
            ("{value: x}", "env[0].name: Required value"),
            (
                "{name: 'A=B'}",
                "env[0].name: expected letters, digits, '_', '-' and '.', no digit at the start, "
                'found "A=B"',
            ),
            ("{name: A, value: 5}", "env[0].value: expected a string, found 5; quote it"),
            (
                "{name: A, value: x, valueFrom: {fieldRef: {fieldPath: y}}}",
                "env[0].valueFrom: Invalid value: may not be specified when `value` is not empty",
            ),
            (
                "{name: A, valueFrom: {}}",
                "env[0].valueFrom: expected one of configMapKeyRef, fieldRef, fileKeyRef, resourceFieldRef, "
                "secretKeyRef, found none",
            ),
            (
                "{name: A, valueFrom: {fieldRef: {fieldPath: x}, secretKeyRef: {}}}",
                "env[0].valueFrom: expected one of configMapKeyRef, fieldRef, fileKeyRef, resourceFieldRef, "
                "secretKeyRef, found fieldRef, secretKeyRef",
            ),
            ("{name: A, valueFrom: {fieldRef: {}}}", "env[0].valueFrom.fieldRef.fieldPath: Required value"),
            (
                "{name: A, valueFrom: {resourceFieldRef: {}}}",
                "env[0].valueFrom.resourceFieldRef.resource: Required value",
            ),
            (
                "{name: A, valueFrom: {secretKeyRef: {name: s}}}",
                "env[0].valueFrom.secretKeyRef.key: Required value",
            ),
            (
                "{name: A, valueFrom: {configMapKeyRef: {key: k}}}",
                "env[0].valueFrom.configMapKeyRef.name: Required value",
            ),
        ):
            with self.subTest(entry):
                self.refuse_container(f"env: [{entry}]", expected)

    def test_whole_objects(self):
        sources = self.container(
            "envFrom: [{prefix: P_, configMapRef: {name: c}}, {secretRef: {name: s, optional: true}}]"
        ).environment_sources
        self.assertEqual(
            sources,
            (
                EnvironmentSource(ObjectReference("ConfigMap", "c"), "P_"),
                EnvironmentSource(ObjectReference("Secret", "s", "", True)),
            ),
        )

    def test_wrong_objects(self):
        self.refuse_container(
            "envFrom: [{}]", "envFrom[0]: expected one of configMapRef, secretRef, found none"
        )
        self.refuse_container("envFrom: [{secretRef: {}}]", "envFrom[0].secretRef.name: Required value")


class VolumeTest(PodTest):
    def volume(self, entry):
        (volume,) = self.read_spec(manifest(replica("Worker", pod=f"volumes: [{entry}]"))).volumes
        return volume

    def test_kinds(self):
        for entry, expected in (
            ("{name: v}", Volume("v", "emptyDir")),
            ("{name: v, emptyDir: {medium: Memory}}", Volume("v", "emptyDir")),
            ("{name: v, hostPath: {path: /data, type: Directory}}", Volume("v", "hostPath", "/data")),
            ("{name: v, persistentVolumeClaim: {claimName: c}}", Volume("v", "persistentVolumeClaim", "c")),
            ("{name: v, secret: {secretName: s, optional: true}}", Volume("v", "secret", "s", optional=True)),
            (
                "{name: v, configMap: {name: c, items: [{key: k, path: a/b.txt}]}}",
                Volume("v", "configMap", "c", (VolumeFile("k", "a/b.txt"),)),
            ),
            (
                "{name: v, secret: {secretName: s, items: [{key: k, path: ./a//.b}]}}",
                Volume("v", "secret", "s", (VolumeFile("k", "a/.b"),)),
            ),
            ("{name: v, nfs: {server: s, path: /x}}", Volume("v", "nfs")),
        ):
            with self.subTest(entry):
                self.assertEqual(self.volume(entry), expected)

    def test_wrong_volumes(self):
        for entry, expected in (
            ("{emptyDir: {}}", "volumes[0].name: Required value"),
            (
                "{name: v, emptyDir: {}, hostPath: {path: /}}",
                "volumes[0]: expected one kind of volume, found emptyDir, hostPath",
            ),
            (
                "{name: v, persistentVolumeClaim: {}}",
                "volumes[0].persistentVolumeClaim.claimName: Required value",
            ),
            ("{name: v, hostPath: {}}", "volumes[0].hostPath.path: Required value"),
            ("{name: v, configMap: {}}", "volumes[0].configMap.name: Required value"),
            ("{name: v, secret: {name: s}}", "volumes[0].secret.secretName: Required value"),
            (
                "{name: v, secret: {secretName: s, items: [{path: p}]}}",
                "volumes[0].secret.items[0].key: Required value",
            ),
            (
                "{name: v, secret: {secretName: s, items: [{key: k}]}}",
                "volumes[0].secret.items[0].path: Required value",
            ),
            (
                "{name: v, configMap: {name: c, items: [{key: k, path: ../x}]}}",
                "volumes[0].configMap.items[0].path: expected a relative path without '..', found \"../x\"",
            ),
            (
                "{name: v, configMap: {name: c, items: [{key: k, path: ..x/y}]}}",
                "volumes[0].configMap.items[0].path: expected a path without '..' at the start, found \"..x/y\"",
            ),
            (
                "{name: v, secret: {secretName: s, items: [{key: k, path: ./.}]}}",
                'volumes[0].secret.items[0].path: expected the path of a file, found "./."',
            ),
            (
                "{name: v, secret: {secretName: s, items: [{key: k, path: a/b/c}, {key: k, path: a//b}]}}",
                'volumes[0].secret.items: "a/b/c" lies below "a/b", which is a file',
            ),
            (
                "{name: v, hostPath: {path: /data/../etc}}",
                "volumes[0].hostPath.path: expected a path without '..', found \"/data/../etc\"",
            ),
            (
                "{name: v, persistentVolumeClaim: {claimName: ../x}}",
                "volumes[0].persistentVolumeClaim.claimName: expected lower case letters, digits, and '-' and "
                "'.' between them, at most 253, found \"../x\"",
            ),
            (
                "{name: ../x}",
                "volumes[0].name: expected lower case letters, digits and '-' between them, at most 63, "
                'found "../x"',
            ),
            ("{name: v}, {name: v}", 'volumes[1].name: Duplicate value: "v"'),
        ):
            with self.subTest(entry):
                self.refuse_pod(f"volumes: [{entry}]", expected)

    def test_mounts(self):
        (mount,) = self.container(
            "volumeMounts: [{name: v, mountPath: /x, subPath: a/b, readOnly: true}]", "volumes: [{name: v}]"
        ).mounts
        self.assertEqual(mount, VolumeMount("v", "/x", "a/b", True))

    def test_mount_with_variables(self):
        self.assert_pod_warning(
            "containers[0].volumeMounts[0].subPathExpr: ignored locally, the whole volume is mounted",
            pod="volumes: [{name: v}]",
            container="volumeMounts: [{name: v, mountPath: /x, subPathExpr: $(POD)}]",
        )

    def test_wrong_mounts(self):
        for entry, expected in (
            ("{mountPath: /x}", "volumeMounts[0].name: Required value"),
            ("{name: v}", "volumeMounts[0].mountPath: Required value"),
            (
                "{name: v, mountPath: /x, subPath: /a}",
                "volumeMounts[0].subPath: expected a relative path without '..', found \"/a\"",
            ),
            (
                "{name: v, mountPath: /x, subPath: a/../b}",
                "volumeMounts[0].subPath: expected a relative path without '..', found \"a/../b\"",
            ),
            (
                f"{{name: v, mountPath: /x, subPath: a/{'é' * 128}}}",
                "volumeMounts[0].subPath: expected names of at most 255 bytes between '/', "
                f'found "a/{"é" * 53}..."',
            ),
            (
                "{name: v, mountPath: /x}, {name: w, mountPath: /x}",
                'volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
            ),
        ):
            with self.subTest(entry):
                self.refuse_container(f"volumeMounts: [{entry}]", expected, "volumes: [{name: v}, {name: w}]")

    def test_mount_of_an_unknown_volume(self):
        mounts = "volumeMounts: [{name: model, mountPath: /model}]"
        text = manifest(replica("Worker", container=mounts, pod="volumes: [{name: data}]"))
        self.assert_refused(
            text, f'{POD}.volumes: no volume "model" for /model of the container tensorflow, found data'
        )
        text = manifest(replica("Worker", pod=f"initContainers: [{{name: i, image: x, {mounts}}}]"))
        self.assert_refused(
            text, f'{POD}.volumes: no volume "model" for /model of the container i, found none'
        )
