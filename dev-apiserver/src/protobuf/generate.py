#!/usr/bin/env python3
"""Generates fields.txt, the schema of the kinds of dev-apiserver, from the modules k8s.io/api and k8s.io/apimachinery
(go mod download). Usage: generate.py API_DIR APIMACHINERY_DIR > fields.txt

generated.proto has the numbers and names of fields. types.go shows which fields are pointers or inline.
"""
import re, sys
from pathlib import Path

api, machinery = map(Path, sys.argv[1:3])
META = "k8s.io/apimachinery/pkg/apis/meta/v1"
ROOTS = {  # folder: kinds
    "core/v1": "ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolumeClaim PersistentVolume Pod "
               "PodTemplate ResourceQuota Secret ServiceAccount Service Binding",
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication/v1": "SelfSubjectReview TokenReview TokenRequest",
    "authorization/v1": "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "autoscaling/v1": "Scale",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "coordination/v1": "Lease",
    "discovery/v1": "EndpointSlice",
    "networking/v1": "IngressClass Ingress NetworkPolicy",
    "policy/v1": "PodDisruptionBudget Eviction",
    "rbac/v1": "ClusterRoleBinding ClusterRole RoleBinding Role",
    "scheduling/v1": "PriorityClass",
    "storage/v1": "StorageClass",
}
GROUPS = {"core": "", "apps": "apps", "autoscaling": "autoscaling", "batch": "batch", "policy": "policy",
          "rbac": "rbac.authorization.k8s.io"}
# Messages whose JSON is not an object with their fields; special.rs reads them.
SPECIAL = {"Time", "MicroTime", "Quantity", "IntOrString", "FieldsV1", "RawExtension", "Duration", "ExtraValue"}
SCALARS = {"string": "s", "int32": "i", "int64": "i", "uint32": "i", "bool": "b", "bytes": "y"}

messages, flags = {}, {}


def short(package, name):
    last = name.split(".")[-1]
    if last in SPECIAL:
        return last
    full = name if "." in name else f"{package}.{name}"
    full = full.removeprefix(".").replace("k8s.io.api.", "").replace("k8s.io.apimachinery.pkg.apis.", "")
    return full


def read(folder):
    proto = (folder / "generated.proto").read_text()
    package = re.search(r"^package (.*);", proto, re.M).group(1)
    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", proto, re.M | re.S):
        fields = []
        pattern = r"^  (?:(repeated|optional) )?(map<string, *([\w.]+)>|[\w.]+) (\w+) = (\d+);"
        for label, kind, value, field, number in re.findall(pattern, body, re.M):
            mark, kind = ("%", value) if value else ("*" if label == "repeated" else "", kind)
            fields.append((int(number), field, mark, SCALARS.get(kind) or short(package, kind)))
        messages[short(package, name)] = fields
    for source in folder.glob("*types.go"):
        for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", source.read_text(), re.M | re.S):
            for line in body.splitlines():
                tag = re.search(r'json:"([^"]*)".*?protobuf:"[^"]*name=(\w+)', line)
                if tag:
                    is_pointer = bool(re.match(r"\s*\w+\s+\*", line))
                    json = tag.group(1).split(",")
                    flags[short(package, name), tag.group(2)] = (is_pointer, "inline" in json, json[0])


for folder in ROOTS:
    read(api / folder)
read(machinery / "pkg/apis/meta/v1")
wanted = ["meta.v1.DeleteOptions"]
print("@ v1 DeleteOptions meta.v1.DeleteOptions")
for folder, kinds in ROOTS.items():
    group, version = folder.split("/")
    group = GROUPS.get(group, f"{group}.k8s.io")
    for kind in kinds.split():
        name = f"{folder.replace('/', '.')}.{kind}"
        print("@", f"{group}/{version}" if group else version, kind, name)
        wanted.append(name)
seen = set()
while wanted:
    name = wanted.pop(0)
    if name in seen or name in SPECIAL or name not in messages:
        assert name in seen or name in SPECIAL, name
        continue
    seen.add(name)
    print("=", name)
    for number, field, mark, kind in sorted(messages[name]):
        pointer, inline, json = flags.get((name, field), (False, False, field))
        mark = "^" if inline else mark or ("?" if pointer else "")
        print(number, json or field, mark + kind)
        if len(kind) > 1:
            wanted.append(kind)
