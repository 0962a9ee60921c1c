package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// with returns a client with these content types.
func with(w *world, contentType, accept string) (kubernetes.Interface, error) {
	config := rest.CopyConfig(w.config)
	config.ContentType = contentType
	config.AcceptContentTypes = accept
	return kubernetes.NewForConfig(config)
}

// The settings of the controllers of Kubernetes and Karmada.
func typedProtobuf(ctx context.Context, w *world) error {
	kube, err := with(w, "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json")
	if err != nil {
		return err
	}
	return roundTrip(ctx, kube, w.namespace, "by-protobuf")
}

func typedJSON(ctx context.Context, w *world) error {
	kube, err := with(w, "application/json", "application/json")
	if err != nil {
		return err
	}
	return roundTrip(ctx, kube, w.namespace, "by-json")
}

// roundTrip creates, reads, updates (with a conflict), patches and deletes an object.
func roundTrip(ctx context.Context, kube kubernetes.Interface, namespace, name string) error {
	maps := kube.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"check": name}},
		Data:       map[string]string{"a": "1"},
		BinaryData: map[string][]byte{"b": {0, 255}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := equal("the namespace", made.Namespace, namespace); err != nil {
		return err
	}
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a second create: %w", err)
	}
	read, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if err := equal("the data", read.Data["a"]+string(read.BinaryData["b"]), "1\x00\xff"); err != nil {
		return err
	}
	read.Data["a"] = "2"
	if _, err := maps.Update(ctx, read, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if _, err := maps.Update(ctx, read, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an update of an old version: %w", err)
	}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"data":{"merge":"x"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic":"x"}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"x"}]`,
	} {
		if _, err := maps.Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "check=" + name})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if len(list.Items) != 1 || len(list.Items[0].Data) != 4 {
		return fmt.Errorf("the list holds %v", list.Items)
	}
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if _, err := maps.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("after delete: %w", err)
	}
	return nil
}

func workload(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	replicas := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "ticker", Image: "busybox"}}},
			},
		},
	}
}

// The template must not change: no additional field, no unexpected rollout.
func typedDeployment(ctx context.Context, w *world) error {
	kube, err := with(w, "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json")
	if err != nil {
		return err
	}
	return deployed(ctx, kube, w.namespace, "typed")
}

// deployed creates a Deployment, reads it and scales it.
func deployed(ctx context.Context, kube kubernetes.Interface, namespace, name string) error {
	deployments := kube.AppsV1().Deployments(namespace)
	if _, err := deployments.Create(ctx, workload(name), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := available(ctx, kube, namespace, name); err != nil {
		return err
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		scale, err := deployments.GetScale(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = 2
		_, err = deployments.UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	if err := available(ctx, kube, namespace, name); err != nil {
		return err
	}
	read, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(read.Spec.Template.Spec.NodeSelector)+len(read.Spec.Template.Spec.Tolerations) > 0 {
		return fmt.Errorf("the template came back with %v %v",
			read.Spec.Template.Spec.NodeSelector, read.Spec.Template.Spec.Tolerations)
	}
	generation := read.Generation
	written, err := deployments.Update(ctx, read, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("putting back what was read: %w", err)
	}
	return equal("the generation after putting back what was read", written.Generation, generation)
}

func available(ctx context.Context, kube kubernetes.Interface, namespace, name string) error {
	return eventually(ctx, func() error {
		read, err := kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if read.Status.ObservedGeneration < read.Generation || read.Status.AvailableReplicas != *read.Spec.Replicas {
			return fmt.Errorf("%d of %d replicas are available", read.Status.AvailableReplicas, *read.Spec.Replicas)
		}
		return nil
	})
}

// DeleteOptions are a request body in protobuf, too.
func typedDeleteOptions(ctx context.Context, w *world) error {
	kube, err := with(w, "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json")
	if err != nil {
		return err
	}
	maps := kube.CoreV1().ConfigMaps(w.namespace)
	for _, name := range []string{"doomed-1", "doomed-2", "doomed-3"} {
		doomed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"doomed": "yes"}}}
		if _, err := maps.Create(ctx, doomed, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	other := types.UID("00000000-0000-0000-0000-000000000000")
	err = maps.Delete(ctx, "doomed-1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("a delete of another uid: %w", err)
	}
	background := metav1.DeletePropagationBackground
	if err := maps.Delete(ctx, "doomed-1", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return err
	}
	doomed := metav1.ListOptions{LabelSelector: "doomed=yes"}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, doomed); err != nil {
		return err
	}
	left, err := maps.List(ctx, doomed)
	if err != nil {
		return err
	}
	return equal("the number of what is left", len(left.Items), 0)
}

// All pages together equal the list.
func typedChunks(ctx context.Context, w *world) error {
	maps := w.kube.CoreV1().ConfigMaps(w.namespace)
	for n := range 7 {
		piece := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("piece-%d", n), Labels: map[string]string{"piece": "yes"},
		}}
		if _, err := maps.Create(ctx, piece, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, namespace := range []string{w.namespace, metav1.NamespaceAll} {
		names := map[string]bool{}
		options := metav1.ListOptions{LabelSelector: "piece=yes", Limit: 3}
		for {
			page, err := w.kube.CoreV1().ConfigMaps(namespace).List(ctx, options)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				names[item.Namespace+"/"+item.Name] = true
			}
			if page.Continue == "" {
				break
			}
			options.Continue = page.Continue
		}
		if err := equal("the number of pieces in "+namespace, len(names), 7); err != nil {
			return err
		}
	}
	return nil
}

func typedWatch(ctx context.Context, w *world) error {
	maps := w.kube.CoreV1().ConfigMaps(w.namespace)
	start, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	events, err := w.kube.CoreV1().ConfigMaps(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{
		ResourceVersion: start.ResourceVersion, FieldSelector: "metadata.name=watched", AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "watched", metav1.DeleteOptions{}); err != nil {
		return err
	}
	want := []watch.EventType{watch.Added, watch.Deleted}
	for event := range events.ResultChan() {
		if event.Type == watch.Bookmark {
			continue
		}
		if event.Type != want[0] {
			return fmt.Errorf("%s where %s was expected: %v", event.Type, want[0], event.Object)
		}
		configMap, ok := event.Object.(*corev1.ConfigMap)
		if !ok || configMap.Namespace != w.namespace {
			return fmt.Errorf("an event about %v", event.Object)
		}
		if want = want[1:]; len(want) == 0 {
			return nil
		}
	}
	return errors.New("the watch ended early")
}

func typedReviews(ctx context.Context, w *world) error {
	access, err := w.kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: w.namespace, Verb: "create", Group: "apps", Resource: "deployments",
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if !access.Status.Allowed || access.Spec.ResourceAttributes.Namespace != w.namespace {
		return fmt.Errorf("the review says %v", access)
	}
	who, err := w.kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if strings.Contains(fmt.Sprint(who.Status.UserInfo.Username, who.Status.UserInfo.Groups), "vc:") {
		return fmt.Errorf("the user is %v", who.Status.UserInfo)
	}
	token, err := w.kube.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = token.Status.Token
	robot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	who, err = robot.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := equal("the token's user", who.Status.UserInfo.Username, "system:serviceaccount:"+w.namespace+":default"); err != nil {
		return err
	}
	_, err = robot.CoreV1().Secrets(w.namespace).List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("a list of secrets by a service account without rights: %w", err)
	}
	return nil
}
