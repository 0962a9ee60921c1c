// Command generate passes inputs to Kubernetes' own libraries, and writes the results as JSON. See README.md.
package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// out writes one case per line, so that a diff shows cases.
func out[T any](name string, cases []T) {
	var b bytes.Buffer
	for i, c := range cases {
		b.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(c); err != nil {
			panic(err)
		}
		b.Write(bytes.TrimSpace(line.Bytes()))
	}
	b.WriteString("\n]\n")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		panic(err)
	}
}

func main() {
	factory := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	type ri struct {
		Method, Url                                                            string
		Resource                                                               bool
		Verb, Group, Version, Namespace, ResourceName, Subresource, Name, Path string
	}
	var ris []ri
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	urls := []string{
		"/", "/api", "/api/", "/apis", "/apis/", "/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/apps/v1/", "/version", "/healthz/etcd", "/openapi/v3/apis/apps/v1", "/livez",
		"/readyz?verbose", "/logs/x", "/.well-known/openid-configuration", "/metrics", "/foo/v1/pods",
		"/api/v1/pods", "/api/v1/pods/", "/api/v1/nodes", "/api/v1/nodes/n1", "/api/v1/nodes/n1/status", "/api/v1/nodes/n1/proxy/metrics/cadvisor",
		"/api/v1/namespaces", "/api/v1/namespaces/edge", "/api/v1/namespaces/edge/", "/api/v1/namespaces/edge/status", "/api/v1/namespaces/edge/finalize",
		"/api/v1/namespaces/edge/pods", "/api/v1/namespaces/edge/pods/x", "/api/v1/namespaces/edge/pods/x/status", "/api/v1/namespaces/edge/pods/x/log?follow=true",
		"/api/v1/namespaces/edge/pods/x/exec?command=sh&stdin=1", "/api/v1/namespaces/edge/services/https:web:443/proxy/a//b/c%2Fd?x=1;y", "/api/v1/namespaces/edge/services/web/proxy",
		"/api/v1/namespaces/edge/services/web/proxy/",
		"/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/edge/deployments/d/scale", "/apis/apps/v1/namespaces/edge", "/apis/apps/v1/namespaces/edge/status",
		"/apis/example.com/v1alpha1/namespaces/edge/status/x", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
		"/apis/custom.metrics.k8s.io/v1beta1/namespaces/edge/pods/*/http_requests", "/apis/custom.metrics.k8s.io/v1beta1/namespaces/edge/pods/%2A/http_requests",
		"/api/v1/watch/pods", "/api/v1/watch/namespaces", "/api/v1/watch/namespaces/edge", "/api/v1/watch/namespaces/edge/pods", "/api/v1/watch/namespaces/edge/pods/x", "/apis/apps/v1/watch/deployments",
		"/api/v1/watch/nodes/n1",
		"/api/v1/pods?watch=true", "/api/v1/pods?watch=1", "/api/v1/pods?watch=t", "/api/v1/pods?watch=True", "/api/v1/pods?watch", "/api/v1/pods?watch=", "/api/v1/pods?watch=false", "/api/v1/pods?watch=False", "/api/v1/pods?watch=0", "/api/v1/pods?watch=00", "/api/v1/pods?watch=no", "/api/v1/pods?%77atch=true", "/api/v1/pods?Watch=true",
		"/api/v1/namespaces/edge/pods/x?watch=true",
		"/api/v1/pods?fieldSelector=metadata.name%3Dx", "/api/v1/pods?fieldSelector=metadata.name=x", "/api/v1/pods?fieldSelector=metadata.name%3D%3Dx,metadata.namespace%3Dedge", "/api/v1/pods?fieldSelector=metadata.name!%3Dx",
		"/api/v1/namespaces?fieldSelector=metadata.name%3Dedge&watch=true", "/api/v1/namespaces/edge/pods?fieldSelector=metadata.name%3Db,metadata.name%3Da", "/api/v1/pods?fieldSelector=metadata.name%3D", "/api/v1/pods?fieldSelector=metadata.name%3Da%2Fb", "/api/v1/pods?fieldSelector=metadata.name%3Da%5C,b", "/api/v1/pods?fieldSelector=",
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "/api/v1/pods?fieldSelector=metadata.name%3Da+b",
	}
	for _, u := range urls {
		ms := methods
		if len(u) > 40 || u == "/" {
			ms = []string{"GET", "POST"}
		}
		for _, m := range ms {
			parsed, err := url.ParseRequestURI(u)
			if err != nil {
				panic(err)
			}
			info, err := factory.NewRequestInfo(&http.Request{Method: m, URL: parsed})
			if err != nil {
				panic(err)
			}
			ris = append(ris, ri{m, u, info.IsResourceRequest, info.Verb, info.APIGroup, info.APIVersion, info.Namespace, info.Resource, info.Subresource, info.Name, info.Path})
		}
	}
	out("request_info.json", ris)

	type sel struct {
		Input     string
		Canonical *string
		Error     string `json:",omitempty"`
	}
	var ls []sel
	for _, s := range []string{
		"", " ", "a", "!a", "a,b", "b,a", "a=b", "a==b", "a = b", "a!=b", "a=", "a==", "a!=", "a=,b", "a in (x)", "a in (y,x)", "a in (x,x)", "a in ()", "a in (,)", "a in (,x)", "a in (x,)", "a in (x,,y)", "a notin (x,y)", "a notin ()",
		"a>1", "a<1", "a > 10", "a>007", "a>x", "a>", "a>-1", "a>99999999999999999999", "x in (foo,,baz),y,z notin ()", "in in (in)", "notin=in", "in", "notin", "a in (in,notin)", "in=a",
		"kubernetes.io/metadata.name in (edge,default)", "kubernetes.io/metadata.name=edge", "a.b/c=d", "a/b/c=d", "/a=b", "a/=b", "A_b.c=D_e.f",
		"a=b,", ",a=b", ",", "a,,b", "a b", "!a=b", "!", "!!a", "a=b=c", "a===b", "a=!b", "a>=1", "a in x", "a in (x", "a in (x y)", "a in (x))", "a in (!x)", "a in", "(a)", "a(b)", "a=(b)", "-a=b", "a=-b", "a=b-", "a=b c", "a\t=\nb\r", "a=\"b\"", "a='b'", "a=é", "é=a", "a=1234567890123456789012345678901234567890123456789012345678901234", "a1234567890123456789012345678901234567890123456789012345678901234",
		"a=b,a=c", "a,a", "a in (b),a notin (c)", "!a,a=b", "a=b,c in (d,e),!f,g,h!=i,j>3,k<4", "a<>b", "a!b", "a! =b", "a= =b",
	} {
		p, err := labels.Parse(s)
		if err != nil {
			ls = append(ls, sel{s, nil, err.Error()})
			continue
		}
		c := p.String()
		ls = append(ls, sel{s, &c, ""})
	}
	out("label_selectors.json", ls)
	var fs []sel
	for _, s := range []string{
		"", ",", "a=b", "a==b", "a!=b", "a=b,c=d", "c=d,a=b", "a=", "a!=", "=a", "=", "a", "a=b,", ",a=b", "a=b,,c=d", "a=b=c", "a=b\\=c", "a=b\\,c", "a=b\\\\c", "a=b\\", "a=b\\x", "a=\\", "a\\,b=c", "a\\=b", "a!!=b", "a!==b", "a===b", "a = b", "metadata.name=x,metadata.namespace!=kube-system", "metadata.name=é,status.phase=Running", "a=b!c", "a=!", "!a=b", "a\\", "a=b c",
	} {
		p, err := fields.ParseSelector(s)
		if err != nil {
			fs = append(fs, sel{s, nil, err.Error()})
			continue
		}
		c := p.String()
		fs = append(fs, sel{s, &c, ""})
	}
	out("field_selectors.json", fs)

	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	codecs := serializer.NewCodecFactory(scheme)
	pods := schema.GroupResource{Resource: "pods"}
	deps := schema.GroupResource{Group: "apps", Resource: "deployments"}
	type st struct{ Name, Json, Protobuf string }
	var sts []st
	add := func(name string, e error) {
		s := statusOf(e)
		js, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), "application/json")
		pb, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), "application/vnd.kubernetes.protobuf")
		var b, p bytes.Buffer
		if err := js.Serializer.Encode(s, &b); err != nil {
			panic(err)
		}
		if err := pb.Serializer.Encode(s, &p); err != nil {
			panic(err)
		}
		sts = append(sts, st{name, b.String(), hex.EncodeToString(p.Bytes())})
	}
	u := &user.DefaultInfo{Name: "jane <j@x>"}
	add("bad_request", apierrors.NewBadRequest("a \"quoted\" <tag> & \u2028 \x01 \b \f \n é \U0001F600"))
	add("unauthorized", apierrors.NewUnauthorized(""))
	add("unauthorized_text", apierrors.NewUnauthorized("Unauthorized"))
	add("forbidden_namespace", responsewriters.ForbiddenStatusError(authorizer.AttributesRecord{User: u, Verb: "get", Namespace: "n", Resource: "pods", Name: "x", ResourceRequest: true}, "reason"))
	add("forbidden_cluster", responsewriters.ForbiddenStatusError(authorizer.AttributesRecord{User: u, Verb: "list", APIGroup: "apps", Resource: "deployments", Subresource: "scale", ResourceRequest: true}, ""))
	add("forbidden_path", responsewriters.ForbiddenStatusError(authorizer.AttributesRecord{User: u, Verb: "get", Path: "/metrics"}, ""))
	add("forbidden_plain", apierrors.NewForbidden(pods, "x", fmt.Errorf("no")))
	add("not_found", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "foo"))
	add("not_found_group", apierrors.NewNotFound(deps, "q\"\té\u200b\u00a0\x7f\U000E0001"))
	add("already_exists", apierrors.NewAlreadyExists(deps, "d"))
	add("conflict", apierrors.NewConflict(deps, "d", fmt.Errorf("the object has been modified")))
	add("gone", apierrors.NewGone("gone"))
	add("expired", apierrors.NewResourceExpired("too old resource version: 1 (2)"))
	add("invalid_none", apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "d", nil))
	add("invalid_one", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{field.Invalid(field.NewPath("spec", "nodeSelector").Key("location"), "hangzhou", "is decided by the virtual cluster")}))
	add("invalid_two", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{field.Forbidden(field.NewPath("spec", "nodeName"), "no"), field.Required(field.NewPath("metadata", "name"), "")}))
	add("method_not_allowed", apierrors.NewMethodNotSupported(deps, "patch"))
	add("too_many_requests", apierrors.NewTooManyRequests("slow down", 7))
	add("server_timeout", apierrors.NewServerTimeout(pods, "get", 2))
	add("timeout", apierrors.NewTimeoutError("no answer", 0))
	add("internal_error", apierrors.NewInternalError(fmt.Errorf("boom")))
	add("service_unavailable", apierrors.NewServiceUnavailable("away"))
	add("request_entity_too_large", apierrors.NewRequestEntityTooLargeError("limit is 3145728"))
	ex := apierrors.NewResourceExpired("x")
	ex.ErrStatus.ListMeta.Continue = "tok"
	n := int64(5)
	ex.ErrStatus.ListMeta.RemainingItemCount = &n
	ex.ErrStatus.ListMeta.ResourceVersion = "12"
	ex.ErrStatus.Details = &metav1.StatusDetails{UID: "u-1"}
	add("with_metadata", ex)
	out("status.json", sts)
}

func statusOf(e error) *metav1.Status {
	s := e.(apierrors.APIStatus).Status()
	s.Kind = "Status"
	s.APIVersion = "v1"
	return &s
}
