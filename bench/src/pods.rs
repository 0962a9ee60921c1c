//! Pods, encoded like those of an API server.

use std::fmt::Write as _;

pub(crate) const CLUSTERS: [&str; 2] = ["ke-beijing", "ke-hangzhou"];
pub(crate) const NAMESPACES: [&str; 3] = ["default", "edge", "monitoring"];

/// A `PodList` whose pods belong to the virtual clusters in turns.
pub(crate) fn list(pods: usize) -> String {
    list_of(pods, pod_of_list)
}

/// A `PodList` of one namespace of the host.
pub(crate) fn list_in(pods: usize, namespace: &str) -> String {
    list_of(pods, |out, number| pod(out, &format!("frontend-{number:05}"), namespace, "beijing", number))
}

/// One pod with this name, as the response to a GET.
pub(crate) fn small(name: &str, namespace: &str) -> String {
    let mut out = String::new();
    pod(&mut out, name, namespace, "beijing", 7);
    out.insert_str(1, r#""kind":"Pod","apiVersion":"v1","#);
    out.push('\n');
    out
}

fn list_of(pods: usize, write: impl Fn(&mut String, usize)) -> String {
    let mut out =
        String::from(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"4711"},"items":["#);
    for number in 0..pods {
        if number > 0 {
            out.push(',');
        }
        write(&mut out, number);
    }
    out.push_str("]}\n");
    out
}

/// A pod as a controller creates it: without status, managed fields and names of the host.
pub(crate) fn pod_to_create() -> String {
    let mut pod: serde_json::Value = serde_json::from_str(&small("frontend", NAMESPACES[1])).expect("it is JSON");
    let object = pod.as_object_mut().expect("a pod is an object");
    object.remove("status");
    for (part, keys) in [("metadata", &["managedFields", "uid", "resourceVersion"][..]), ("spec", &["nodeName"])] {
        if let Some(part) = object.get_mut(part).and_then(serde_json::Value::as_object_mut) {
            for key in keys {
                part.remove(*key);
            }
        }
    }
    pod.to_string()
}

fn pod_of_list(out: &mut String, number: usize) {
    let cluster = CLUSTERS[number % CLUSTERS.len()];
    let namespace = NAMESPACES[number / CLUSTERS.len() % NAMESPACES.len()];
    let name = format!("frontend-{number:05}");
    pod(out, &name, &format!("{namespace}-{cluster}"), cluster.trim_start_matches("ke-"), number);
}

fn pod(out: &mut String, name: &str, namespace: &str, location: &str, number: usize) {
    let hash = number.wrapping_mul(0x9e37_79b9) & 0xffff_ffff;
    let uid = format!("{hash:08x}-7c1e-4b52-9d3a-{number:012x}");
    let node = format!("{location}-edge-{:02}", number % 40);
    write!(
        out,
        concat!(
            r#"{{"metadata":{{"name":"{name}","generateName":"frontend-","namespace":"{namespace}","uid":"{uid}","#,
            r#""resourceVersion":"{version}","creationTimestamp":"2026-03-02T08:15:{second:02}Z","labels":{{"app":"frontend","#,
            r#""app.kubernetes.io/managed-by":"Helm","pod-template-hash":"{hash:08x}","tier":"web"}},"annotations":"#,
            r#"{{"prometheus.io/port":"9090","prometheus.io/scrape":"true","checksum/config":"{uid}{uid}"}},"ownerReferences":[{{"apiVersion":"apps/v1","#,
            r#""kind":"ReplicaSet","name":"frontend-{hash:08x}","uid":"{uid}","controller":true,"blockOwnerDeletion":true}}],"#,
            r#""managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-03-02T08:15:03Z","#,
            r#""fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:prometheus.io/port":{{}},"f:prometheus.io/scrape":{{}}}},"#,
            r#""f:generateName":{{}},"f:labels":{{".":{{}},"f:app":{{}},"f:pod-template-hash":{{}}}},"f:ownerReferences":{{".":{{}},"#,
            r#""k:{{\"uid\":\"{uid}\"}}":{{}}}}}},"f:spec":{{"f:containers":{{"k:{{\"name\":\"web\"}}":{{".":{{}},"f:env":{{".":{{}},"#,
            r#""k:{{\"name\":\"POD_IP\"}}":{{".":{{}},"f:name":{{}},"f:valueFrom":{{".":{{}},"f:fieldRef":{{}}}}}}}},"f:image":{{}},"#,
            r#""f:imagePullPolicy":{{}},"f:name":{{}},"f:resources":{{}},"f:terminationMessagePath":{{}}}}}},"f:dnsPolicy":{{}},"#,
            r#""f:nodeSelector":{{}},"f:restartPolicy":{{}},"f:schedulerName":{{}},"f:securityContext":{{}}}}}}}},"#,
            r#"{{"manager":"edgecore","operation":"Update","apiVersion":"v1","time":"2026-03-02T08:15:09Z","fieldsType":"FieldsV1","#,
            r#""fieldsV1":{{"f:status":{{"f:conditions":{{"k:{{\"type\":\"Ready\"}}":{{".":{{}},"f:lastProbeTime":{{}},"f:status":{{}},"f:type":{{}}}}}},"#,
            r#""f:containerStatuses":{{}},"f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:startTime":{{}}}}}},"subresource":"status"}}]}},"#,
            r#""spec":{{"volumes":[{{"name":"kube-api-access-x7k2p","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},"#,
            r#"{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"#,
            r#""containers":[{{"name":"web","image":"registry.example.com/shop/frontend:1.{minor}.0","args":["--listen=:8080","--log-format=\"json\""],"#,
            r#""ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"env":[{{"name":"POD_IP","valueFrom":{{"fieldRef":"#,
            r#"{{"apiVersion":"v1","fieldPath":"status.podIP"}}}}}}],"resources":{{"limits":{{"cpu":"500m","memory":"256Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},"#,
            r#""volumeMounts":[{{"name":"kube-api-access-x7k2p","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}],"#,
            r#""terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"#,
            r#""restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","nodeSelector":{{"location":"{location}"}},"#,
            r#""serviceAccountName":"default","nodeName":"{node}","securityContext":{{}},"schedulerName":"default-scheduler","#,
            r#""tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"#,
            r#""priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}},"status":{{"phase":"Running","conditions":["#,
            r#"{{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-02T08:15:03Z"}},"#,
            r#"{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-02T08:15:09Z"}}],"#,
            r#""hostIP":"10.2.0.{host}","podIP":"10.244.{host}.{host}","startTime":"2026-03-02T08:15:03Z","containerStatuses":[{{"name":"web","#,
            r#""state":{{"running":{{"startedAt":"2026-03-02T08:15:08Z"}}}},"lastState":{{}},"ready":true,"restartCount":0,"#,
            r#""image":"registry.example.com/shop/frontend:1.{minor}.0","imageID":"registry.example.com/shop/frontend@sha256:{hash:064x}","#,
            r#""containerID":"containerd://{hash:064x}","started":true}}],"qosClass":"Burstable"}}}}"#,
        ),
        name = name,
        namespace = namespace,
        uid = uid,
        version = 1_000_000 + number,
        second = number % 60,
        hash = hash,
        location = location,
        node = node,
        minor = number % 7,
        host = number % 250,
    )
    .expect("writing to a string");
}
