// Command shown writes objects as an API server sends them, in JSON and in protobuf, and as a virtual cluster must see
// them. Both forms are defined by hand, as typed objects. See README.md.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

type encoded struct {
	Json, Protobuf string
}

type sample struct {
	Name, Group, Resource, Filter string
	Host                          encoded
	// Shown is empty if the object does not belong to the virtual cluster.
	Shown *encoded
}

func ptr[T any](value T) *T { return &value }

func meta(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: "u", ResourceVersion: "7",
		CreationTimestamp: metav1.Time{Time: time.Unix(1700000000, 0).UTC()},
	}
}

func managed(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}}
}

// template is a pod whose node selector and last toleration are from Atoll.
func template(labels map[string]string, tolerations ...corev1.Toleration) corev1.PodSpec {
	return corev1.PodSpec{
		Containers:   []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "E", Value: "in edge-ke"}}}},
		NodeSelector: labels, NodeName: "beijing-1", Tolerations: tolerations,
	}
}

var (
	ours     = corev1.Toleration{Key: "edge", Operator: corev1.TolerationOpExists}
	notReady = corev1.Toleration{
		Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr(int64(300)),
	}
	unreachable = corev1.Toleration{
		Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr(int64(30)),
	}
	other = corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists, TolerationSeconds: ptr(int64(3))}
)

func main() {
	if err := metav1.AddMetaToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	samples := []sample{}
	add := func(name, group, resource, filter string, host, shown runtime.Object) {
		one := sample{Name: name, Group: group, Resource: resource, Filter: filter, Host: encode(host)}
		if shown != nil {
			one.Shown = ptr(encode(shown))
		}
		samples = append(samples, one)
	}

	pod := func(namespace, where, fields string, spec corev1.PodSpec) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: meta("a", namespace), Spec: spec}
		pod.ManagedFields = managed(fields)
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "edge-ke", UID: "r"}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "False", Message: "nobody in " + where}}
		return pod
	}
	guarded := map[string]string{"location": "beijing"}
	hidden := pod("edge-ke", "edge-ke", `{"f:spec":{"f:nodeSelector":{},"f:tolerations":{},"f:x":{}}}`, template(guarded, ours))
	plain := pod("edge", "edge", `{"f:spec":{"f:x":{}}}`, template(nil))
	add("pod", "", "pods", "ByNamespace", hidden, plain)
	add("pod-of-others", "", "pods", "ByNamespace", pod("edge-hz", "edge-hz", `{}`, template(guarded)), nil)
	add("pod-with-more", "", "pods", "ByNamespace",
		pod("edge-ke", "edge-ke", `{"f:spec":{"f:nodeSelector":{},"f:tolerations":{}}}`,
			template(map[string]string{"disk": "ssd", "location": "beijing"}, other, ours)),
		pod("edge", "edge", `{"f:spec":{"f:nodeSelector":{},"f:tolerations":{}}}`,
			template(map[string]string{"disk": "ssd"}, other)))
	add("pod-with-what-admission-adds", "", "pods", "ByNamespace",
		pod("edge-ke", "edge-ke", `{"f:spec":{"f:nodeSelector":{},"f:tolerations":{},"f:x":{}}}`,
			template(guarded, ours, notReady, unreachable)),
		pod("edge", "edge", `{"f:spec":{"f:x":{}}}`, template(nil, notReady, unreachable)))

	node := func(fields string, labels map[string]string) *corev1.Node {
		object := &corev1.Node{ObjectMeta: meta("beijing-1", "")}
		object.Labels = labels
		object.ManagedFields = managed(fields)
		return object
	}
	add("node", "", "nodes", "Everything",
		node(`{"f:metadata":{"f:labels":{".":{},"f:atoll.node-restriction.kubernetes.io/hz":{},"f:tier":{}}}}`, map[string]string{
			"atoll.node-restriction.kubernetes.io/hz": "true", "atoll.node-restriction.kubernetes.io/ke": "true", "tier": "edge",
		}),
		node(`{"f:metadata":{"f:labels":{".":{},"f:tier":{}}}}`, map[string]string{"tier": "edge"}))
	add("node-without-other-labels", "", "nodes", "Everything",
		node(`{"f:metadata":{"f:labels":{"f:atoll.node-restriction.kubernetes.io/ke":{}},"f:name":{}}}`, map[string]string{
			"atoll.node-restriction.kubernetes.io/ke": "true",
		}),
		node(`{"f:metadata":{"f:name":{}}}`, nil))

	deployment := func(namespace, applied string, spec corev1.PodSpec) *appsv1.Deployment {
		object := &appsv1.Deployment{ObjectMeta: meta("web", namespace)}
		object.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: applied, "note": "edge-ke"}
		object.Spec.Template.Spec = spec
		return object
	}
	add("deployment-applied-by-the-server", "apps", "deployments", "Everything",
		deployment("edge-ke", `{"kind":"Deployment","metadata":{"name":"web","namespace":"edge-ke"},"spec":{"template":{"spec":{"nodeSelector":{"location":"beijing"},"x":1}}}}`, template(guarded)),
		deployment("edge", `{"kind":"Deployment","metadata":{"name":"web","namespace":"edge"},"spec":{"template":{"spec":{"x":1}}}}`, template(nil)))
	own := `{"kind":"Deployment","metadata":{"name":"web","namespace":"edge"},"spec":{"a":"edge-ke"}}`
	add("deployment-applied-by-the-client", "apps", "deployments", "Everything",
		deployment("edge-ke", own, template(nil)), deployment("edge", own, template(nil)))
	revision := func(namespace, data string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: meta("r", namespace), Revision: 3, Data: runtime.RawExtension{Raw: []byte(data)}}
	}
	add("revision", "apps", "controllerrevisions", "ByNamespace",
		revision("edge-ke", `{"spec":{"template":{"spec":{"nodeSelector":{"location":"beijing"},"x":{}}}}}`),
		revision("edge", `{"spec":{"template":{"spec":{"x":{}}}}}`))

	namespace := func(name string, labels map[string]string, fields string, conditions ...corev1.NamespaceCondition) *corev1.Namespace {
		object := &corev1.Namespace{ObjectMeta: meta(name, "")}
		object.Labels = labels
		object.ManagedFields = managed(fields)
		object.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating, Conditions: conditions}
		return object
	}
	content := func(status corev1.ConditionStatus, reason, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: corev1.NamespaceContentRemaining, Status: status, Reason: reason, Message: message}
	}
	finalizers := func(status corev1.ConditionStatus, reason, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: corev1.NamespaceFinalizersRemaining, Status: status, Reason: reason, Message: message}
	}
	add("namespace", "", "namespaces", "ByName",
		namespace("edge-ke", map[string]string{
			"atoll.dev/namespace": "edge", "atoll.dev/virtual-cluster": "ke", "kubernetes.io/metadata.name": "edge-ke", "team": "a",
		}, `{"f:metadata":{"f:labels":{".":{},"f:atoll.dev/namespace":{},"f:team":{}}}}`,
			content("True", "SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances, rolebindings.rbac.authorization.k8s.io has 2 resource instances"),
			finalizers("True", "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: atoll.dev/mirror in 2 resource instances")),
		namespace("edge", map[string]string{"kubernetes.io/metadata.name": "edge", "team": "a"},
			`{"f:metadata":{"f:labels":{".":{},"f:team":{}}}}`,
			content("True", "SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances"),
			finalizers("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")))
	add("namespace-of-others", "", "namespaces", "ByName", namespace("edge-hz", nil, `{}`), nil)

	secret := func(namespace string, kind corev1.SecretType, certificate, inside string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: meta("s", namespace), Type: kind, Data: map[string][]byte{
			"ca.crt": []byte(certificate), "namespace": []byte(inside), "token": []byte("edge-ke"),
		}}
	}
	add("secret-of-a-token", "", "secrets", "ByNamespace",
		secret("edge-ke", corev1.SecretTypeServiceAccountToken, "HOST", "edge-ke"),
		secret("edge", corev1.SecretTypeServiceAccountToken, "PEM\n", "edge"))
	add("secret", "", "secrets", "ByNamespace",
		secret("edge-ke", corev1.SecretTypeOpaque, "HOST", "edge-ke"), secret("edge", corev1.SecretTypeOpaque, "HOST", "edge-ke"))
	config := func(name, namespace, certificate string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta(name, namespace), Data: map[string]string{"ca.crt": certificate}}
	}
	add("certificate", "", "configmaps", "ByNamespace",
		config("kube-root-ca.crt", "edge-ke", "HOST"), config("kube-root-ca.crt", "edge", "PEM\n"))
	add("config", "", "configmaps", "ByNamespace", config("other", "edge-ke", "HOST"), config("other", "edge", "HOST"))

	event := func(namespace, kind, name, message string) *corev1.Event {
		object := &corev1.Event{ObjectMeta: meta("e", namespace), Message: message}
		object.InvolvedObject = corev1.ObjectReference{Kind: kind, Name: name, Namespace: namespace}
		return object
	}
	add("event", "", "events", "ByNamespace",
		event("edge-ke", "Pod", "edge-ke", `no quota in edge-ke for "vc:ke:eve", edge-ke-x`),
		event("edge", "Pod", "edge-ke", `no quota in edge for "eve", edge-ke-x`))
	add("event-about-a-namespace", "", "events", "ByNamespace",
		event("default-ke", "Namespace", "edge-hz", "x"), event("default", "Namespace", "host:edge-hz", "x"))

	binding := func(namespace string, users, groups []string, accounts string) *rbacv1.RoleBinding {
		object := &rbacv1.RoleBinding{ObjectMeta: meta("b", namespace), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "r"}}
		for _, user := range users {
			object.Subjects = append(object.Subjects, rbacv1.Subject{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: user})
		}
		for _, group := range groups {
			object.Subjects = append(object.Subjects, rbacv1.Subject{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: group})
		}
		object.Subjects = append(object.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: "edge-ke", Namespace: accounts})
		return object
	}
	add("binding", "rbac.authorization.k8s.io", "rolebindings", "ByNamespace",
		binding("edge-ke", []string{"vc:ke:eve", "admin"}, []string{"system:serviceaccounts:edge-ke"}, "default-ke"),
		binding("edge", []string{"eve", "host:admin"}, []string{"system:serviceaccounts:edge"}, "default"))
	role := func(namespace string, names ...string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: meta("r", namespace), Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: names},
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"edge-ke"}},
		}}
	}
	add("role", "rbac.authorization.k8s.io", "roles", "ByNamespace", role("edge-ke", "edge-ke", "edge-hz"), role("edge", "edge", "host:edge-hz"))

	policy := func(namespace, peer string, confined bool) *networkingv1.NetworkPolicy {
		in := metav1.LabelSelectorRequirement{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{peer}}
		selector := metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": peer, "a": "edge-ke"}, MatchExpressions: []metav1.LabelSelectorRequirement{in}}
		if confined {
			selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: "atoll.dev/virtual-cluster", Operator: "In", Values: []string{"ke"},
			})
		}
		object := &networkingv1.NetworkPolicy{ObjectMeta: meta("n", namespace)}
		object.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &selector}}}}
		return object
	}
	add("policy", "networking.k8s.io", "networkpolicies", "ByNamespace", policy("edge-ke", "edge-ke", true), policy("edge", "edge", false))
	volume := func(namespace string) *corev1.PersistentVolume {
		object := &corev1.PersistentVolume{ObjectMeta: meta("v", "")}
		object.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Name: "c", Namespace: namespace}
		return object
	}
	add("volume", "", "persistentvolumes", "ByClaim", volume("edge-ke"), volume("edge"))
	add("volume-of-others", "", "persistentvolumes", "ByClaim", volume("edge-hz"), nil)
	add("volume-of-nobody", "", "persistentvolumes", "ByClaim", &corev1.PersistentVolume{ObjectMeta: meta("v", "")}, nil)
	attachment := func(node string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: meta("t", ""), Spec: storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr("v")}}}
	}
	add("attachment", "storage.k8s.io", "volumeattachments", "ByNode", attachment("beijing-1"), attachment("beijing-1"))
	add("attachment-of-others", "storage.k8s.io", "volumeattachments", "ByNode", attachment("hangzhou-1"), nil)
	devices := func(node string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: meta("s", ""), Spec: resourcev1.ResourceSliceSpec{Driver: "d", NodeName: ptr(node)}}
	}
	add("devices", "resource.k8s.io", "resourceslices", "ByNode", devices("beijing-1"), devices("beijing-1"))
	add("devices-of-others", "resource.k8s.io", "resourceslices", "ByNode", devices("hangzhou-1"), nil)
	address := func(namespace string) *networkingv1.IPAddress {
		parent := &networkingv1.ParentReference{Resource: "services", Namespace: namespace, Name: "edge-ke"}
		return &networkingv1.IPAddress{ObjectMeta: meta("10.0.0.1", ""), Spec: networkingv1.IPAddressSpec{ParentRef: parent}}
	}
	add("address", "networking.k8s.io", "ipaddresses", "ByParent", address("edge-ke"), address("edge"))
	add("address-of-others", "networking.k8s.io", "ipaddresses", "ByParent", address("edge-hz"), nil)
	add("address-of-nobody", "networking.k8s.io", "ipaddresses", "ByParent", &networkingv1.IPAddress{ObjectMeta: meta("10.0.0.1", "")}, nil)
	priority := func(annotations map[string]string) *flowcontrolv1.FlowSchema {
		object := &flowcontrolv1.FlowSchema{ObjectMeta: meta("f", "")}
		object.Annotations = annotations
		object.Spec.MatchingPrecedence = 1
		return object
	}
	kept := priority(map[string]string{"a": "b", "apf.kubernetes.io/autoupdate-spec": "true"})
	add("priority", "flowcontrol.apiserver.k8s.io", "flowschemas", "Autoupdated", kept, kept)
	add("priority-of-the-operator", "flowcontrol.apiserver.k8s.io", "flowschemas", "Autoupdated", priority(map[string]string{"apf.kubernetes.io/autoupdate-spec": "false"}), nil)
	add("priority-of-others", "flowcontrol.apiserver.k8s.io", "flowschemas", "Autoupdated", priority(nil), nil)
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta("w", "")}
	add("webhook-of-the-host", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "Nothing", hook, nil)
	slice := func(namespace string) *discoveryv1.EndpointSlice {
		target := &corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: namespace}
		return &discoveryv1.EndpointSlice{ObjectMeta: meta("x", namespace), AddressType: "IPv4", Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, TargetRef: target}}}
	}
	add("endpoints", "discovery.k8s.io", "endpointslices", "ByNamespace", slice("edge-ke"), slice("edge"))

	who := func(user string, groups ...string) *authenticationv1.SelfSubjectReview {
		return &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user, Groups: groups}}}
	}
	add("who", "authentication.k8s.io", "selfsubjectreviews", "Everything",
		who("vc:ke:eve", "vc:ke:a", "system:authenticated", "vc:ke:system:authenticated", "system:serviceaccounts:edge-ke"),
		who("eve", "a", "system:authenticated", "system:serviceaccounts:edge"))
	rules := func(namespace, name, message string) *authorizationv1.SelfSubjectRulesReview {
		return &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
			Status: authorizationv1.SubjectRulesReviewStatus{EvaluationError: message, ResourceRules: []authorizationv1.ResourceRule{
				{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{name}},
			}},
		}
	}
	add("rules", "authorization.k8s.io", "selfsubjectrulesreviews", "Everything",
		rules("edge-ke", "edge-ke", "none in edge-ke"), rules("edge", "edge", "none in edge"))

	remaining := int64(9)
	add("list", "", "pods", "ByNamespace",
		&corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "token", RemainingItemCount: &remaining}, Items: []corev1.Pod{
			*pod("edge-hz", "x", `{}`, template(nil)), *hidden, *pod("kube-system", "x", `{}`, template(nil)), *hidden,
		}},
		&corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "sealed token"}, Items: []corev1.Pod{*plain, *plain}})
	add("list-of-nothing", "", "pods", "ByNamespace",
		&corev1.PodList{Items: []corev1.Pod{*pod("edge-hz", "x", `{}`, template(nil))}}, &corev1.PodList{Items: []corev1.Pod{}})
	add("metadata", "", "namespaces", "ByName",
		&metav1.PartialObjectMetadata{ObjectMeta: namespace("edge-ke", map[string]string{"atoll.dev/namespace": "edge"}, `{}`).ObjectMeta},
		&metav1.PartialObjectMetadata{ObjectMeta: namespace("edge", nil, `{}`).ObjectMeta})
	add("list-of-metadata", "", "pods", "ByNamespace",
		&metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []metav1.PartialObjectMetadata{
			{ObjectMeta: meta("a", "edge-ke")}, {ObjectMeta: meta("b", "edge-hz")},
		}},
		&metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []metav1.PartialObjectMetadata{{ObjectMeta: meta("a", "edge")}}})
	status := func(message, name string) *metav1.Status {
		return &metav1.Status{Status: "Failure", Reason: "NotFound", Code: 404, Message: message, Details: &metav1.StatusDetails{Name: name, Kind: "namespaces"}}
	}
	add("status", "", "namespaces", "ByName", status(`namespaces "edge-ke" not found`, "edge-ke"), status(`namespaces "edge" not found`, "edge"))

	type annotations = map[string]string
	service := func(namespace string, annotations annotations, fields string, health int32, ports ...corev1.ServicePort) *corev1.Service {
		object := &corev1.Service{ObjectMeta: meta("s", namespace)}
		object.Annotations = annotations
		object.ManagedFields = managed(fields)
		object.Spec = corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.2", Ports: ports, HealthCheckNodePort: health,
		}
		return object
	}
	port := func(number int32, protocol corev1.Protocol, node int32) corev1.ServicePort {
		return corev1.ServicePort{Name: "p", Port: number, Protocol: protocol, TargetPort: intstr.FromInt32(number), NodePort: node}
	}
	asked := service("edge-ke", annotations{
		"a": "b", "atoll.dev/asked-node-port.53.udp": "30053", "atoll.dev/asked-node-port.80.tcp": "80",
		"atoll.dev/asked-node-port.9.tcp": "30009", "atoll.dev/asked-node-port.health-check": "30090", "c": "d",
	}, `{"f:metadata":{"f:annotations":{"f:atoll.dev/asked-node-port.80.tcp":{}}},"f:x":{}}`, 31090,
		port(80, "TCP", 31080), port(53, "TCP", 31001), port(53, "UDP", 31053), port(9, "TCP", 0))
	told := service("edge", annotations{
		"a": "b", "atoll.dev/node-ports": "30053=31053,80=31080,30009,30090=31090", "c": "d",
	}, `{"f:metadata":{},"f:x":{}}`, 30090, port(80, "TCP", 80), port(53, "TCP", 31001), port(53, "UDP", 30053), port(9, "TCP", 0))
	add("service", "", "services", "ByNamespace", asked, told)
	settled := func(namespace string) *corev1.Service {
		return service(namespace, annotations{"a": "b"}, `{"f:x":{}}`, 0, port(80, "TCP", 31080), port(53, "", 0))
	}
	add("service-that-got-what-it-asked-for", "", "services", "ByNamespace", settled("edge-ke"), settled("edge"))
	add("service-with-made-up-annotations", "", "services", "ByNamespace",
		service("edge-ke", annotations{
			"atoll.dev/asked-node-port.80.tcp": "many", "atoll.dev/asked-node-port.x": "1", "atoll.dev/node-ports": "1=2",
		}, `{}`, 0, port(80, "TCP", 31080)),
		service("edge", nil, `{}`, 0, port(80, "TCP", 31080)))
	applied := func(namespace, applied, key, value string, node int32) *corev1.Service {
		annotations := annotations{key: value, corev1.LastAppliedConfigAnnotation: applied}
		return service(namespace, annotations, `{}`, 0, port(80, "TCP", node))
	}
	add("service-applied-by-the-server", "", "services", "ByNamespace",
		applied("edge-ke", `{"metadata":{"annotations":{"atoll.dev/asked-node-port.80.tcp":"30080"},"namespace":"edge-ke"},"spec":{"ports":[{"nodePort":31080,"port":80}]}}`,
			"atoll.dev/asked-node-port.80.tcp", "30080", 31080),
		applied("edge", `{"metadata":{"annotations":{"atoll.dev/node-ports":"30080=31080"},"namespace":"edge"},"spec":{"ports":[{"nodePort":30080,"port":80}]}}`,
			"atoll.dev/node-ports", "30080=31080", 30080))
	others := service("edge-hz", asked.Annotations, `{}`, 31090, asked.Spec.Ports...)
	add("service-of-others", "", "services", "ByNamespace", others, nil)
	add("list-of-services", "", "services", "ByNamespace",
		&corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Service{*others, *asked, *settled("edge-ke"), *asked}},
		&corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Service{*told, *settled("edge"), *told}})
	untold := told.ObjectMeta.DeepCopy()
	untold.Annotations["atoll.dev/node-ports"] = "30053,80,30009,30090"
	add("metadata-of-a-service", "", "services", "ByNamespace",
		&metav1.PartialObjectMetadata{ObjectMeta: asked.ObjectMeta}, &metav1.PartialObjectMetadata{ObjectMeta: *untold})
	add("list-of-metadata-of-services", "", "services", "ByNamespace",
		&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: others.ObjectMeta}, {ObjectMeta: asked.ObjectMeta}}},
		&metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: *untold}}})

	var out bytes.Buffer
	for i, one := range samples {
		line, err := json.Marshal(one)
		if err != nil {
			panic(err)
		}
		out.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		out.Write(line)
	}
	out.WriteString("\n]\n")
	if err := os.WriteFile("shown.json", out.Bytes(), 0o644); err != nil {
		panic(err)
	}
}

func encode(object runtime.Object) encoded {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		panic(err)
	}
	kind := kinds[0]
	if _, isStatus := object.(*metav1.Status); isStatus {
		kind.Group, kind.Version = "", "v1"
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var wire bytes.Buffer
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			if err := info.Serializer.Encode(object, &wire); err != nil {
				panic(err)
			}
		}
	}
	return encoded{string(text), base64.StdEncoding.EncodeToString(wire.Bytes())}
}
