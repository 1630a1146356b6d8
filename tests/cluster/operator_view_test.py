"""The view of an operator's objects that is compared with the launcher's answer."""

import unittest
from typing import Any, Dict

import jobs
from operator_view import compare, launchers_answer, operators_answer


def answer_to(name: str) -> Dict[str, Dict[str, Any]]:
    source = jobs.load(jobs.ODD)
    (job,) = [job for job in source.jobs if job["metadata"]["name"] == name]
    return launchers_answer(jobs.read_job(job, source.path))


class View(unittest.TestCase):
    def test_a_difference_of_one_byte_is_named(self) -> None:
        compared, differences = compare(answer_to("lower"), answer_to("lower"))
        self.assertEqual((compared > 50, differences), (True, []))
        changed = answer_to("lower")
        variables = changed["pods"]["lower-ps-0"]["env"]
        variables["TF_CONFIG"] += " "
        (difference,) = compare(changed, answer_to("lower"))[1]
        self.assertTrue(difference.startswith('/pods/lower-ps-0/env/TF_CONFIG: expected {"cluster":{'), difference)

    def test_what_is_missing_and_what_nobody_expects_are_differences(self) -> None:
        without = answer_to("alone")
        del without["services"]["alone-worker-0"]
        self.assertEqual({line.split("/")[1] for line in compare(without, answer_to("alone"))[1]}, {"services"})
        self.assertTrue(all(line.endswith("found nothing") for line in compare(without, answer_to("alone"))[1]))
        self.assertTrue(all("expected nothing" in line for line in compare(answer_to("alone"), without)[1]))

    def test_objects_of_a_cluster(self) -> None:
        container = {
            "name": "tensorflow",
            "env": [{"name": "A", "value": "1"}, {"name": "N", "valueFrom": {"fieldRef": {}}}, {"name": "EMPTY"}],
            "ports": [{"containerPort": 9090, "protocol": "TCP"}, {"name": "tfjob-port", "containerPort": 2222}],
        }
        init = {"name": "first"}
        spec = {"restartPolicy": "Never", "containers": [{"name": "sidecar"}, container], "initContainers": [init]}
        pod = {"metadata": {"name": "p", "labels": {"a": "b"}, "uid": "1"}, "spec": spec, "status": {}}
        ports = [{"name": "tfjob-port", "port": 2222, "targetPort": 2222}]
        service = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "clusterIP": "None", "ports": ports}}
        self.assertEqual(
            operators_answer([pod], [service]),
            {
                "pods": {
                    "p": {
                        "labels": {"a": "b"},
                        "annotations": {},
                        "restartPolicy": "Never",
                        "env": {"A": "1", "N": "(from elsewhere)", "EMPTY": ""},
                        "ports": [["", 9090], ["tfjob-port", 2222]],
                        "initContainers": {"first": {}},
                    }
                },
                "services": {
                    "s": {"labels": {}, "selector": {"a": "b"}, "clusterIP": "None", "ports": [["tfjob-port", 2222]]}
                },
            },
        )


if __name__ == "__main__":
    unittest.main()
