//! The initial history of a watch: a dictionary for its first block.
//!
//! In an idle cluster, most watches send only one event, a bookmark, before the client opens them again. Without a dictionary,
//! compression would hardly shorten this event. Both ends must have the same text. If you change it, also change its name in
//! [`encoding`](crate::encoding).

use std::sync::LazyLock;

use super::history::History;

/// Fragments of events, then whole bookmarks, as kube-apiserver writes them. zstd encodes a smaller offset in fewer bits, so the
/// most frequent events come last.
const TEXT: &str = concat!(
    r#"{"type":"DELETED","object":{"type":"MODIFIED","object":{"type":"ADDED","object":{"kind":"","apiVersion":"v1","#,
    r#""metadata":{"name":"","generateName":"","namespace":"default","uid":"","resourceVersion":"","generation":1,"#,
    r#""creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"","labels":{"app":"","app.kubernetes.io/name":"","#,
    r#""kubernetes.io/metadata.name":"","pod-template-hash":""},"annotations":{"#,
    r#""kubectl.kubernetes.io/last-applied-configuration":"","deployment.kubernetes.io/revision":"1"},"#,
    r#""ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"","uid":"","controller":true,"#,
    r#""blockOwnerDeletion":true}],"managedFields":[{"manager":"kube-controller-manager","operation":"Update","#,
    r#""apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"#,
    r#""f:spec":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"#,
    r#""f:reason":{},"f:status":{},"f:type":{}}}}},"subresource":"status"}]},"spec":{"finalizers":["kubernetes"]},"#,
    r#""containers":[{"name":"","image":"","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"","#,
    r#""memory":""},"requests":{"cpu":"","memory":""}},"volumeMounts":[{"name":"","readOnly":true,"#,
    r#""mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"terminationMessagePath":"/dev/termination-log","#,
    r#""terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","#,
    r#""terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","nodeName":"","#,
    r#""securityContext":{},"schedulerName":"default-scheduler","status":{"phase":"Running","conditions":[{"type":"Ready","#,
    r#""status":"True","lastProbeTime":null,"lastHeartbeatTime":"","lastTransitionTime":"","reason":"","message":""}]"#,
    r#"}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"Node","apiVersion":"v1","metadata":{"resourceVersion":"1"},"spec":{},"#,
    r#""status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","#,
    r#""kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","#,
    r#""operatingSystem":"","architecture":""}}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"1"},"#,
    r#""spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"#,
    r#""status":{}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","#,
    r#""metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}},"#,
    r#""roleRef":{"apiGroup":"","kind":"","name":""}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","#,
    r#""metadata":{"resourceVersion":"1"},"rules":null}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":"1"},"#,
    r#""spec":{},"status":{"loadBalancer":{}}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"resourceVersion":"1"},"#,
    r#""spec":{},"status":{}}}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1"},"#,
    r#""spec":{"containers":null},"status":{}}}"#,
    "\n",
);

static HISTORY: LazyLock<History> = LazyLock::new(|| History::of(TEXT.as_bytes()));

/// The history. All bodies share it.
pub(super) fn history() -> History {
    HISTORY.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    /// Programs of different versions must have the same text for the name that they agree on.
    #[test]
    fn another_text_has_another_name() {
        let digest = Digest::of(TEXT.as_bytes()).to_string();
        assert_eq!(
            digest, "552f8d359ff6168256b45a4a7da70dee3d4779a064830b0f4d948cdf56d6adf1",
            "also change the name in `encoding`"
        );
    }
}
