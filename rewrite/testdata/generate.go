// Command generate writes objects as Kubernetes' own serialisers encode them, before and after the mapping of this
// crate, which it implements again for typed objects. See README.md.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	cluster = "ke"
	root    = "atoll-root-ke"
)

var (
	label      = [2]string{"location", "beijing"}
	toleration = corev1.Toleration{Key: "edge", Operator: corev1.TolerationOpExists}
	nodes      []string
)

type encoded struct {
	Json, Protobuf string
}

type sample struct {
	Name, Group, Version, Kind string
	// Namespaced is set if the request has a namespace in its path: "edge".
	Namespaced    bool
	Virtual, Host encoded
	Nodes         []string
}

func host(name string) string {
	if name == "" {
		return ""
	}
	return name + "-" + cluster
}

func identity(name string) string {
	const account, accounts = "system:serviceaccount:", "system:serviceaccounts:"
	switch {
	case len(name) > len(account) && name[:len(account)] == account:
		rest := []byte(name[len(account):])
		colon := bytes.IndexByte(rest, ':')
		return account + host(string(rest[:colon])) + string(rest[colon:])
	case len(name) > len(accounts) && name[:len(accounts)] == accounts:
		return accounts + host(name[len(accounts):])
	}
	return "vc:" + cluster + ":" + name
}

func reference(r *corev1.ObjectReference) {
	if r == nil {
		return
	}
	r.Namespace = host(r.Namespace)
	if r.Kind == "Namespace" {
		r.Name = host(r.Name)
	}
}

func selector(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	const name = "kubernetes.io/metadata.name"
	if v, ok := s.MatchLabels[name]; ok {
		s.MatchLabels[name] = host(v)
	}
	for i := range s.MatchExpressions {
		if e := &s.MatchExpressions[i]; e.Key == name {
			for j := range e.Values {
				e.Values[j] = host(e.Values[j])
			}
		}
	}
	s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: "atoll.dev/virtual-cluster", Operator: metav1.LabelSelectorOpIn, Values: []string{cluster},
	})
}

func term(t *corev1.PodAffinityTerm) {
	for i := range t.Namespaces {
		t.Namespaces[i] = host(t.Namespaces[i])
	}
	selector(t.NamespaceSelector)
}

func terms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	for i := range required {
		term(&required[i])
	}
	for i := range preferred {
		term(&preferred[i].PodAffinityTerm)
	}
}

func claim(c *corev1.PersistentVolumeClaimSpec) {
	if r := c.DataSourceRef; r != nil && r.Namespace != nil {
		*r.Namespace = host(*r.Namespace)
	}
}

func pod(s *corev1.PodSpec) {
	if s.NodeSelector == nil {
		s.NodeSelector = map[string]string{}
	}
	s.NodeSelector[label[0]] = label[1]
	if !slices.Contains(s.Tolerations, toleration) {
		s.Tolerations = append(s.Tolerations, toleration)
	}
	if s.NodeName != "" {
		nodes = append(nodes, s.NodeName)
	}
	if a := s.Affinity; a != nil {
		if p := a.PodAffinity; p != nil {
			terms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if p := a.PodAntiAffinity; p != nil {
			terms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
	for _, v := range s.Volumes {
		if v.StorageOS != nil {
			v.StorageOS.VolumeNamespace = host(v.StorageOS.VolumeNamespace)
		}
		if v.Ephemeral != nil {
			v.Ephemeral.VolumeClaimTemplate.Namespace = host(v.Ephemeral.VolumeClaimTemplate.Namespace)
			claim(&v.Ephemeral.VolumeClaimTemplate.Spec)
		}
	}
}

func template(t *corev1.PodTemplateSpec) {
	t.Namespace = host(t.Namespace)
	pod(&t.Spec)
}

func subjects(s []rbacv1.Subject) {
	for i := range s {
		if s[i].Kind == "ServiceAccount" {
			s[i].Namespace = host(s[i].Namespace)
		} else {
			s[i].Name = identity(s[i].Name)
		}
	}
}

// question maps the attributes of an access review. If asked is set, attributes without a namespace are about the root
// namespace.
func question(a *authorizationv1.ResourceAttributes, asked bool) {
	if a == nil {
		return
	}
	if a.Resource == "namespaces" {
		a.Name = host(a.Name)
	}
	if a.Namespace == "" && asked {
		a.Namespace = root
	} else {
		a.Namespace = host(a.Namespace)
	}
}

func identities(names []string) {
	for i := range names {
		names[i] = identity(names[i])
	}
}

// apply changes an object to its form on the host.
func apply(object runtime.Object) {
	meta := object.(metav1.Object)
	for i, o := range meta.GetOwnerReferences() {
		if o.Kind == "Namespace" {
			owners := meta.GetOwnerReferences()
			owners[i].Name = host(o.Name)
			meta.SetOwnerReferences(owners)
		}
	}
	if namespace, ok := object.(*corev1.Namespace); ok {
		own := namespace.Name
		namespace.Name = host(own)
		if namespace.Labels == nil {
			namespace.Labels = map[string]string{}
		}
		if v, ok := namespace.Labels["kubernetes.io/metadata.name"]; ok {
			namespace.Labels["kubernetes.io/metadata.name"] = host(v)
		}
		namespace.Labels["atoll.dev/virtual-cluster"] = cluster
		namespace.Labels["atoll.dev/namespace"] = own
		return
	}
	meta.SetNamespace(host(meta.GetNamespace()))
	switch o := object.(type) {
	case *corev1.Pod:
		pod(&o.Spec)
	case *corev1.PodTemplate:
		template(&o.Template)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			template(o.Spec.Template)
		}
	case *appsv1.Deployment:
		template(&o.Spec.Template)
	case *appsv1.ReplicaSet:
		template(&o.Spec.Template)
	case *appsv1.DaemonSet:
		template(&o.Spec.Template)
	case *appsv1.StatefulSet:
		template(&o.Spec.Template)
		for i := range o.Spec.VolumeClaimTemplates {
			o.Spec.VolumeClaimTemplates[i].Namespace = host(o.Spec.VolumeClaimTemplates[i].Namespace)
			claim(&o.Spec.VolumeClaimTemplates[i].Spec)
		}
	case *appsv1.ControllerRevision:
		var data struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		}
		must(json.Unmarshal(o.Data.Raw, &data))
		template(&data.Spec.Template)
		raw, err := json.Marshal(data)
		must(err)
		o.Data.Raw = raw
	case *batchv1.Job:
		template(&o.Spec.Template)
	case *batchv1.CronJob:
		o.Spec.JobTemplate.Namespace = host(o.Spec.JobTemplate.Namespace)
		template(&o.Spec.JobTemplate.Spec.Template)
		for i := range o.Status.Active {
			reference(&o.Status.Active[i])
		}
	case *corev1.ServiceAccount:
		for i := range o.Secrets {
			reference(&o.Secrets[i])
		}
	case *corev1.Secret:
		if namespace, ok := o.Data["namespace"]; ok && o.Type == corev1.SecretTypeServiceAccountToken {
			o.Data["namespace"] = []byte(host(string(namespace)))
		}
	case *corev1.PersistentVolumeClaim:
		claim(&o.Spec)
	case *corev1.Binding:
		reference(&o.Target)
		nodes = append(nodes, o.Target.Name)
	case *corev1.Event:
		reference(&o.InvolvedObject)
		reference(o.Related)
	case *eventsv1.Event:
		reference(&o.Regarding)
		reference(o.Related)
	case *corev1.Endpoints:
		for _, s := range o.Subsets {
			for _, a := range append(slices.Clone(s.Addresses), s.NotReadyAddresses...) {
				reference(a.TargetRef)
			}
		}
	case *discoveryv1.EndpointSlice:
		for _, e := range o.Endpoints {
			reference(e.TargetRef)
		}
	case *rbacv1.RoleBinding:
		subjects(o.Subjects)
	case *networkingv1.NetworkPolicy:
		for _, rule := range o.Spec.Ingress {
			for _, peer := range rule.From {
				selector(peer.NamespaceSelector)
			}
		}
		for _, rule := range o.Spec.Egress {
			for _, peer := range rule.To {
				selector(peer.NamespaceSelector)
			}
		}
	case *authorizationv1.SelfSubjectAccessReview:
		question(o.Spec.ResourceAttributes, true)
	case *authorizationv1.SelfSubjectRulesReview:
		o.Spec.Namespace = host(o.Spec.Namespace)
	case *authorizationv1.SubjectAccessReview:
		question(o.Spec.ResourceAttributes, true)
		o.Spec.User = identity(o.Spec.User)
		identities(o.Spec.Groups)
	case *authorizationv1.LocalSubjectAccessReview:
		question(o.Spec.ResourceAttributes, false)
		o.Spec.User = identity(o.Spec.User)
		identities(o.Spec.Groups)
	}
}

func objects() map[string]runtime.Object {
	meta := metav1.ObjectMeta{
		Name: "a", Namespace: "edge", UID: "6a64c1f4-0c0f-4f6f-9d3e-0d5e1f6c2a11",
		Labels: map[string]string{"app": "a", "edge": "edge"}, Annotations: map[string]string{"note": "edge and edge-ke"},
		CreationTimestamp: metav1.NewTime(time.Unix(1700000000, 0).UTC()),
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Namespace", Name: "edge", UID: "u"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "edge", UID: "v"},
		},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:nodeSelector":{}}}`)},
		}},
	}
	plain := metav1.ObjectMeta{Name: "a", Namespace: "edge"}
	cross := "default"
	long := string(bytes.Repeat([]byte("x"), 120))
	containers := []corev1.Container{{
		Name: "c", Image: "i", Command: []string{"sh", "-c", long},
		Env:           []corev1.EnvVar{{Name: "NS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}},
		Ports:         []corev1.ContainerPort{{ContainerPort: 80}},
		Resources:     corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}},
	}}
	expressions := []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"edge", "new"}},
		{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"edge"}},
	}
	affinity := func() corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{
			TopologyKey: "zone", Namespaces: []string{"edge", "default"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "edge"}, MatchExpressions: expressions},
			LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "edge"}},
		}
	}
	claimSpec := corev1.PersistentVolumeClaimSpec{
		DataSourceRef: &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "edge", Namespace: &cross},
		Resources:     corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}
	bare := corev1.PodSpec{Containers: containers}
	seconds := int64(-1)
	full := corev1.PodSpec{
		Containers: containers, NodeSelector: map[string]string{"disk": "ssd", "location": "beijing"}, NodeName: "beijing-1",
		Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}, toleration},
		Affinity: &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{affinity(), {TopologyKey: "a"}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 1, PodAffinityTerm: affinity()},
				{Weight: 2, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "a", NamespaceSelector: &metav1.LabelSelector{}}},
			}},
		},
		Volumes: []corev1.Volume{
			{Name: "e", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: plain, Spec: claimSpec}}}},
			{Name: "s", VolumeSource: corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{VolumeNamespace: "edge"}}},
			{Name: "c", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "edge"}}}},
		},
	}
	partly := corev1.PodSpec{
		Containers: containers, NodeSelector: map[string]string{"disk": "ssd"},
		Tolerations: []corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	}
	of := func(s corev1.PodSpec) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: plain, Spec: s}
	}
	match := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	revision, err := json.Marshal(map[string]any{"spec": map[string]any{"template": of(partly)}})
	must(err)
	target := corev1.ObjectReference{Kind: "Pod", Namespace: "edge", Name: "edge", FieldPath: "spec.containers{c}"}
	space := corev1.ObjectReference{Kind: "Namespace", Name: "edge"}
	asks := authorizationv1.ResourceAttributes{Namespace: "edge", Verb: "get", Resource: "pods", Name: "edge"}
	everywhere := authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}
	about := authorizationv1.ResourceAttributes{Verb: "get", Resource: "namespaces", Name: "edge", Namespace: "edge"}
	subject := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &asks, User: "eve", Groups: []string{"system:masters", "system:serviceaccounts:edge"},
	}
	port := intstr.FromInt32(80)
	now := metav1.NewMicroTime(time.Unix(1700000000, 5000).UTC())
	return map[string]runtime.Object{
		"pod, nothing set":      &corev1.Pod{ObjectMeta: meta, Spec: bare},
		"pod, everything set":   &corev1.Pod{ObjectMeta: meta, Spec: full, Status: corev1.PodStatus{Message: "edge-ke"}},
		"pod, something set":    &corev1.Pod{ObjectMeta: plain, Spec: partly},
		"pod, no namespace":     &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}, Spec: bare},
		"pod, no specification": &corev1.Pod{},
		"pod template":          &corev1.PodTemplate{ObjectMeta: plain, Template: of(full)},
		"replication controller": &corev1.ReplicationController{ObjectMeta: plain, Spec: corev1.ReplicationControllerSpec{
			Template: &corev1.PodTemplateSpec{Spec: partly},
		}},
		"replication controller, no template": &corev1.ReplicationController{ObjectMeta: plain},
		"deployment":                          &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: match, Template: of(full)}},
		"replica set":                         &appsv1.ReplicaSet{ObjectMeta: plain, Spec: appsv1.ReplicaSetSpec{Selector: match, Template: of(bare)}},
		"daemon set":                          &appsv1.DaemonSet{ObjectMeta: plain, Spec: appsv1.DaemonSetSpec{Selector: match, Template: of(partly)}},
		"stateful set": &appsv1.StatefulSet{ObjectMeta: plain, Spec: appsv1.StatefulSetSpec{
			Selector: match, Template: of(bare), VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: plain, Spec: claimSpec}, {}},
		}},
		"controller revision": &appsv1.ControllerRevision{ObjectMeta: plain, Data: runtime.RawExtension{Raw: revision}, Revision: 3},
		"job":                 &batchv1.Job{ObjectMeta: plain, Spec: batchv1.JobSpec{Template: of(bare)}},
		"cron job": &batchv1.CronJob{
			ObjectMeta: meta,
			Spec:       batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: plain, Spec: batchv1.JobSpec{Template: of(full)}}},
			Status:     batchv1.CronJobStatus{Active: []corev1.ObjectReference{target}},
		},
		"namespace": &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: map[string]string{"team": "a", "kubernetes.io/metadata.name": "new"}},
			Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
		},
		"namespace, no labels": &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "edge"}},
		"service account":      &corev1.ServiceAccount{ObjectMeta: meta, Secrets: []corev1.ObjectReference{{Name: "edge", Namespace: "edge"}, {Name: "b"}}},
		"secret":               &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"namespace": []byte("edge"), "bytes": {0, 255}}, Type: corev1.SecretTypeOpaque},
		"secret with a token": &corev1.Secret{
			ObjectMeta: plain, Data: map[string][]byte{"namespace": []byte("edge"), "token": []byte("edge")}, Type: corev1.SecretTypeServiceAccountToken,
		},
		"config map":              &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"namespace": "edge", long: long}},
		"service":                 &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: port}}}},
		"persistent volume claim": &corev1.PersistentVolumeClaim{ObjectMeta: plain, Spec: claimSpec},
		"binding":                 &corev1.Binding{ObjectMeta: plain, Target: corev1.ObjectReference{Kind: "Node", Name: "beijing-1"}},
		"event": &corev1.Event{
			ObjectMeta: plain, InvolvedObject: target, Related: &space, Message: "in edge", LastTimestamp: metav1.NewTime(now.Time), Type: "Normal",
		},
		"event of the new kind": &eventsv1.Event{ObjectMeta: plain, Regarding: space, Related: &target, EventTime: now, Note: "in edge"},
		"endpoints": &corev1.Endpoints{ObjectMeta: plain, Subsets: []corev1.EndpointSubset{{
			Addresses:         []corev1.EndpointAddress{{IP: "10.0.0.1", TargetRef: &target}},
			NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.0.0.2"}, {IP: "10.0.0.3", TargetRef: &target}},
		}}},
		"endpoint slice": &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: "IPv4", Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, TargetRef: &target}, {Addresses: []string{"10.0.0.2"}},
		}},
		"role binding": &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "edge"}, Subjects: []rbacv1.Subject{
			{Kind: "User", Name: "eve", APIGroup: "rbac.authorization.k8s.io"}, {Kind: "Group", Name: "system:masters"},
			{Kind: "ServiceAccount", Name: "edge", Namespace: "edge"}, {Kind: "User", Name: "system:serviceaccount:default:a"},
		}},
		"role": &rbacv1.Role{ObjectMeta: plain, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, Resources: []string{"pods"}, ResourceNames: []string{"edge"}}}},
		"network policy": &networkingv1.NetworkPolicy{ObjectMeta: plain, Spec: networkingv1.NetworkPolicySpec{
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}, {PodSelector: match}}}},
			Egress: []networkingv1.NetworkPolicyEgressRule{{}, {To: []networkingv1.NetworkPolicyPeer{{
				PodSelector: match, NamespaceSelector: &metav1.LabelSelector{MatchExpressions: expressions},
			}}}},
		}},
		"lease":                              &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{HolderIdentity: &cross, RenewTime: &now}},
		"pod disruption budget":              &policyv1.PodDisruptionBudget{ObjectMeta: plain, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &port}},
		"eviction":                           &policyv1.Eviction{ObjectMeta: plain, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &seconds}},
		"eviction of the old version":        &policyv1beta1.Eviction{ObjectMeta: plain},
		"scale":                              &autoscalingv1.Scale{ObjectMeta: plain, Spec: autoscalingv1.ScaleSpec{Replicas: 3}},
		"token request":                      &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"edge"}}},
		"self subject review":                &authenticationv1.SelfSubjectReview{},
		"self subject access review":         &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &asks}},
		"self subject access review, all":    &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &everywhere}},
		"self subject access review of one":  &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &about}},
		"self subject access review, a path": &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics"}}},
		"self subject rules review":          &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "edge"}},
		"subject access review":              &authorizationv1.SubjectAccessReview{Spec: subject},
		"local subject access review":        &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "edge"}, Spec: subject},
	}
}

func encode(object runtime.Object, version runtime.GroupVersioner) encoded {
	var out [2]bytes.Buffer
	for i, media := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
		if !ok {
			panic(media)
		}
		must(scheme.Codecs.EncoderForVersion(info.Serializer, version).Encode(object, &out[i]))
	}
	return encoded{string(bytes.TrimSpace(out[0].Bytes())), base64.StdEncoding.EncodeToString(out[1].Bytes())}
}

func main() {
	var samples []sample
	for name, object := range objects() {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		must(err)
		kind := kinds[0]
		object.GetObjectKind().SetGroupVersionKind(kind)
		nodes = []string{}
		mapped := object.DeepCopyObject()
		apply(mapped)
		clusterScoped := []string{"Namespace", "SelfSubjectReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"}
		samples = append(samples, sample{
			name, kind.Group, kind.Version, kind.Kind, !slices.Contains(clusterScoped, kind.Kind),
			encode(object, kind.GroupVersion()), encode(mapped, kind.GroupVersion()), nodes,
		})
	}
	slices.SortFunc(samples, func(a, b sample) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	var out bytes.Buffer
	for i, s := range samples {
		out.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		line, err := json.Marshal(s)
		must(err)
		out.Write(line)
	}
	out.WriteString("\n]\n")
	must(os.WriteFile("protobuf.json", out.Bytes(), 0o644))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
