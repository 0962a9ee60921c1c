package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// inPieces are kinds that a virtual cluster serves in JSON only: assembled lists, and shared objects.
var inPieces = []string{
	"clusterroles", "clusterrolebindings",
	"customresourcedefinitions", "deviceclasses", "ingressclasses", "priorityclasses", "runtimeclasses", "storageclasses",
	"volumeattributesclasses",
}

// single is the number of objects of each kind that are also read one by one. A shared cluster can have hundreds.
const single = 50

// nothingElse makes a client accept only protobuf, and fails if it gets another format.
type nothingElse struct {
	next http.RoundTripper
}

func (t nothingElse) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	accepted := strings.Split(strings.Join(request.Header.Values("Accept"), ","), ",")
	accepted = slices.DeleteFunc(accepted, func(clause string) bool { return !strings.HasPrefix(clause, protobuf) })
	if len(accepted) == 0 {
		return nil, errors.New("the client would not accept protobuf: " + request.URL.Path)
	}
	request.Header.Set("Accept", strings.Join(accepted, ","))
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, protobuf) {
		response.Body.Close()
		return nil, fmt.Errorf("%s %s is answered with %d in %q", request.Method, request.URL.Path, response.StatusCode, kind)
	}
	return response, nil
}

func onlyProtobuf(w *world) *rest.Config {
	config := rest.CopyConfig(w.config)
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return nothingElse{next} })
	return config
}

func protobufTyped(ctx context.Context, w *world) error {
	kube, err := kubernetes.NewForConfig(onlyProtobuf(w))
	if err != nil {
		return err
	}
	return roundTrip(ctx, kube, w.namespace, "nothing-but-protobuf")
}

// protobufDeployment checks hidden fields of pod templates, and errors.
func protobufDeployment(ctx context.Context, w *world) error {
	kube, err := kubernetes.NewForConfig(onlyProtobuf(w))
	if err != nil {
		return err
	}
	if err := deployed(ctx, kube, w.namespace, "in-protobuf"); err != nil {
		return err
	}
	_, err = kube.AppsV1().Deployments(w.namespace).Get(ctx, "none", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("a Deployment that is not there: %w", err)
	}
	_, err = kube.CoreV1().Pods("no-such-namespace").List(ctx, metav1.ListOptions{})
	return err
}

func protobufReviews(ctx context.Context, w *world) error {
	kube, err := kubernetes.NewForConfig(onlyProtobuf(w))
	if err != nil {
		return err
	}
	reviews := kube.AuthorizationV1().SelfSubjectAccessReviews()
	for verb, allowed := range map[string]bool{"list": true, "no-such-verb": true} {
		asked := &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: verb, Resource: "pods"}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked}}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := equal("the answer to "+verb, answer.Status.Allowed, allowed); err != nil {
			return err
		}
		if err := equal("the namespace in question", answer.Spec.ResourceAttributes.Namespace, w.namespace); err != nil {
			return err
		}
	}
	inProtobuf := *w
	inProtobuf.kube = kube
	return typedReviews(ctx, &inProtobuf)
}

func protobufWatchList(ctx context.Context, w *world) error {
	return protobufInformed(ctx, w, true)
}

func protobufListAndWatch(ctx context.Context, w *world) error {
	return protobufInformed(ctx, w, false)
}

func protobufInformed(ctx context.Context, w *world, watchList bool) error {
	kube, err := kubernetes.NewForConfig(onlyProtobuf(w))
	if err != nil {
		return err
	}
	inProtobuf := *w
	inProtobuf.kube = kube
	return informed(ctx, &inProtobuf, watchList)
}

func protobufMetadata(ctx context.Context, w *world) error {
	inProtobuf := *w
	inProtobuf.config = onlyProtobuf(w)
	if err := metadataClient(ctx, &inProtobuf); err != nil {
		return err
	}
	return informersMetadata(ctx, &inProtobuf)
}

// protobufSame requests all resources in JSON and in protobuf, and compares the objects: whole lists, the first single
// objects of each kind, and metadata.
func protobufSame(ctx context.Context, w *world) error {
	if err := metav1.AddMetaToScheme(scheme.Scheme); err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfigOrDie(w.config).ServerPreferredResources()
	if err != nil {
		return err
	}
	compared, objects := 0, 0
	for _, group := range found {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range group.APIResources {
			kind := version.WithKind(resource.Kind)
			listable := slices.Contains(resource.Verbs, "list") && !strings.Contains(resource.Name, "/")
			if !listable || !scheme.Scheme.Recognizes(kind) {
				continue
			}
			var count int
			// Repeat the comparison if an object has changed between the two requests.
			if err := eventually(ctx, func() error {
				count, err = sameInBoth(ctx, w, version, resource)
				return err
			}); err != nil {
				return fmt.Errorf("%s of %s: %w", resource.Name, version, err)
			}
			compared, objects = compared+1, objects+count
		}
	}
	if compared < 30 || objects < 30 {
		return fmt.Errorf("only %d resources with %d objects were compared", compared, objects)
	}
	return nil
}

// unchanged removes the objects from two lists that have changed between the two requests. It also removes the resource
// versions of the lists, which change with every write to the host.
func unchanged(one, other runtime.Object) error {
	var versions [2]uint64
	var items [2][]runtime.Object
	for at, object := range []runtime.Object{one, other} {
		list, err := meta.ListAccessor(object)
		if err != nil {
			if at == 0 {
				return nil // One object, whose version is its own.
			}
			return fmt.Errorf("%T in JSON is %T in protobuf: %w", one, other, err)
		}
		// The list of a kind that is not stored, such as ComponentStatuses, has none.
		if version := list.GetResourceVersion(); version != "" {
			if versions[at], err = strconv.ParseUint(version, 10, 64); err != nil {
				return err
			}
		}
		list.SetResourceVersion("")
		list.SetRemainingItemCount(nil)
		if items[at], err = meta.ExtractList(object); err != nil {
			return err
		}
	}
	if versions[1] < versions[0] {
		return fmt.Errorf("a list at %d in JSON is at %d in protobuf", versions[0], versions[1])
	}
	var found [2]map[string]bool
	for at := range items {
		found[at] = make(map[string]bool)
		for _, item := range items[at] {
			state, err := stateOf(item)
			if err != nil {
				return err
			}
			found[at][state] = true
		}
	}
	for at, object := range []runtime.Object{one, other} {
		kept := slices.DeleteFunc(items[at], func(item runtime.Object) bool {
			state, err := stateOf(item)
			return err != nil || !found[1-at][state]
		})
		if err := meta.SetList(object, kept); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the name and the version of an object.
func stateOf(item runtime.Object) (string, error) {
	object, err := meta.Accessor(item)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%s %s %s", object.GetNamespace(), object.GetName(), object.GetUID(), object.GetResourceVersion()), nil
}

func sameInBoth(ctx context.Context, w *world, version schema.GroupVersion, resource metav1.APIResource) (int, error) {
	root := "/apis/" + version.String()
	if version.Group == "" {
		root = "/api/" + version.Version
	}
	in := func(accept string) (rest.Interface, error) {
		config := rest.CopyConfig(w.config)
		config.GroupVersion = &version
		config.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
		config.AcceptContentTypes = accept
		return rest.RESTClientFor(config)
	}
	json, err := in("application/json")
	if err != nil {
		return 0, err
	}
	proto, err := in(protobuf)
	if err != nil {
		return 0, err
	}
	same := func(path, as string) (runtime.Object, error) {
		ask := func(client rest.Interface, accept string) (runtime.Object, error) {
			return client.Get().AbsPath(path).SetHeader("Accept", accept+as).Do(ctx).Get()
		}
		one, err := ask(json, "application/json")
		if err != nil {
			return nil, fmt.Errorf("in JSON: %w", err)
		}
		other, err := ask(proto, protobuf)
		if err != nil {
			return nil, fmt.Errorf("in protobuf: %w", err)
		}
		if err := unchanged(one, other); err != nil {
			return nil, err
		}
		// Some decoders remove the kind.
		for _, object := range []runtime.Object{one, other} {
			object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			_ = meta.EachListItem(object, func(item runtime.Object) error {
				item.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
				return nil
			})
		}
		if !apiequality.Semantic.DeepEqual(one, other) {
			return nil, fmt.Errorf("%s%s differs (- JSON, + protobuf):\n%s", path, as, diff.Diff(one, other))
		}
		return one, nil
	}
	list, err := same(root+"/"+resource.Name, "")
	if apierrors.IsNotAcceptable(err) && slices.Contains(inPieces, resource.Name) {
		return 0, nil
	}
	if apierrors.IsForbidden(err) {
		if _, err := proto.Get().AbsPath(root + "/" + resource.Name).Do(ctx).Get(); !apierrors.IsForbidden(err) {
			return 0, fmt.Errorf("in protobuf it is not forbidden: %w", err)
		}
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return 0, err
	}
	// Their metadata does not say to which cluster they belong.
	whole := slices.Contains([]string{"ipaddresses", "persistentvolumes", "resourceslices", "volumeattachments", "events"}, resource.Name)
	if !whole {
		if _, err := same(root+"/"+resource.Name, ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"); err != nil {
			return 0, err
		}
	}
	for _, item := range items[:min(len(items), single)] {
		object, err := meta.Accessor(item)
		if err != nil {
			return 0, err
		}
		path := root + "/"
		if resource.Namespaced {
			path += "namespaces/" + object.GetNamespace() + "/"
		}
		path += resource.Name + "/" + object.GetName()
		if _, err := same(path, ""); err != nil {
			return 0, err
		}
		if !whole {
			if _, err := same(path, ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"); err != nil {
				return 0, err
			}
		}
	}
	return len(items), nil
}
