"""What makes a host cluster one of KubeEdge: its release of Kubernetes, and what its controllers and keadm leave on nodes."""

# The minor of Kubernetes that KubeEdge is built from; its programs are called kube-apiserver-1.32 and so on.
RELEASE = "1.32"

# Of a node that joined with an edge taint, as keadm registers it.
LABELS = {"node-role.kubernetes.io/edge": "", "node-role.kubernetes.io/agent": ""}
TAINT = {"key": "node-role.kubernetes.io/edge", "effect": "NoSchedule"}

# What the controller for NodeGroups gives to the nodes of one.
BELONGING_TO = "apps.kubeedge.io/belonging-to"

GROUP, VERSION, PLURAL = "apps.kubeedge.io", "v1alpha1", "nodegroups"
STRING = {"type": "string"}

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP, "scope": "Cluster",
        "names": {"plural": PLURAL, "singular": "nodegroup", "kind": "NodeGroup", "listKind": "NodeGroupList",
                  "shortNames": ["ng"]},
        "versions": [{
            "name": VERSION, "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "apiVersion": STRING, "kind": STRING, "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": {
                    "nodes": {"type": "array", "items": STRING},
                    "matchLabels": {"type": "object", "additionalProperties": STRING},
                }},
                "status": {"type": "object", "properties": {"nodeStatuses": {"type": "array", "items": {
                    "type": "object", "properties": {"nodeName": STRING, "readyStatus": STRING, "selectionStatus": STRING},
                }}}},
            }}},
        }],
    },
}


def node(body, location):
    """The Node `body` as one of the edge, in the group that is called like its location."""
    body["metadata"]["labels"] |= LABELS | {BELONGING_TO: location}
    body["spec"]["taints"] = [TAINT]
    return body


def start(cluster, locations):
    """The NodeGroups, each of the nodes at one location."""
    cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    path = f"/apis/{GROUP}/{VERSION}/{PLURAL}"
    cluster.wait("NodeGroups are served", cluster.FIRST, lambda: cluster.request("GET", path)[0] == 200 or "not yet", 30)
    for location in locations:
        cluster.create(path, {
            "apiVersion": f"{GROUP}/{VERSION}", "kind": "NodeGroup", "metadata": {"name": location},
            "spec": {"matchLabels": {"location": location}},
        })
