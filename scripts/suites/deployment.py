"""Checks the Kubernetes manifests and the settings files in deploy/ without a cluster: BINARY."""

import copy
import pathlib
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml

# The oldest version that the manifests are written for, and newer ones up to the newest known schema.
VERSIONS = ["1.25", "1.30", "1.34", "1.37"]
MANIFESTS = pathlib.Path("deploy/kubernetes")


def documents():
    found = {}
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            found[document["kind"]] = document
    return found


def is_valid(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
        return True
    except kubernetes_validate.ValidationError as error:
        print(f"{document['kind']}: {version}: {error.message} at {list(error.path)}")
        return False


def check_schemas(found):
    # First a manifest with an error, which the validator has to find.
    broken = copy.deepcopy(found["Deployment"])
    broken["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    assert not is_valid(broken, VERSIONS[-1]), "the validator accepts an unknown field"
    for version in VERSIONS:
        for document in found.values():
            assert is_valid(document, version)
    print(f"{len(found)} manifests are valid in Kubernetes {', '.join(VERSIONS)} (and one with a typo is not)")


def check_references(found):
    pod = found["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"]
    container = pod["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    selectors = {
        "Deployment": found["Deployment"]["spec"]["selector"]["matchLabels"],
        "Service": found["Service"]["spec"]["selector"],
        "PodDisruptionBudget": found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        "NetworkPolicy": found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    }
    for kind, selector in selectors.items():
        assert selector.items() <= labels.items(), f"{kind} selects no pod of the Deployment"
    namespace = found["Namespace"]["metadata"]["name"]
    for kind, document in found.items():
        assert kind == "Namespace" or document["metadata"]["namespace"] == namespace, kind
    named = [found["Service"]["spec"]["ports"][0]["targetPort"]]
    named += [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    named += [rule["ports"][0]["port"] for rule in found["NetworkPolicy"]["spec"]["ingress"]]
    assert set(named) <= ports.keys(), f"{named} are not all in {ports}"
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
    settings = next(volume for volume in pod["spec"]["volumes"] if "configMap" in volume)
    assert settings["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    assert str(ports["health"]) == pod["metadata"]["annotations"]["prometheus.io/port"]
    assert f":{ports['health']}\"" in found["ConfigMap"]["data"]["galley.toml"]
    print("selectors, ports, volumes and namespaces match")


def check_settings(binary, text, name):
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory, "galley.toml")
        file.write_text(text)
        result = subprocess.run([binary, "config", "--config", file], env={}, capture_output=True, text=True)
    assert result.returncode == 0, f"{name}: {result.stderr}"
    print(f"{name}: {binary} accepts the settings")


def main():
    found = documents()
    check_schemas(found)
    check_references(found)
    check_settings(sys.argv[1], found["ConfigMap"]["data"]["galley.toml"], "deploy/kubernetes/configmap.yaml")
    check_settings(sys.argv[1], pathlib.Path("deploy/galley.toml").read_text(), "deploy/galley.toml")


main()
