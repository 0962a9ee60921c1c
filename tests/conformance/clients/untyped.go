package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

func dynamicClient(ctx context.Context, w *world) error {
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		return err
	}
	maps := client.Resource(configMaps).Namespace(w.namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "untyped"},
		"data": map[string]any{"a": "1"},
	}}
	made, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := equal("the namespace", made.GetNamespace(), w.namespace); err != nil {
		return err
	}
	applied, err := maps.Apply(ctx, "untyped", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "untyped"},
		"data": map[string]any{"b": "2"},
	}}, metav1.ApplyOptions{FieldManager: "dynamic"})
	if err != nil {
		return err
	}
	data, _, err := unstructured.NestedStringMap(applied.Object, "data")
	if err != nil {
		return err
	}
	if err := equal("the data", data["a"]+data["b"], "12"); err != nil {
		return err
	}
	own, err := client.Resource(namespaces).Get(ctx, w.namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := equal("the namespace's label", own.GetLabels()["kubernetes.io/metadata.name"], w.namespace); err != nil {
		return err
	}
	return maps.Delete(ctx, "untyped", metav1.DeleteOptions{})
}

// PartialObjectMetadata, like the requests of the garbage collector.
func metadataClient(ctx context.Context, w *world) error {
	client, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	list, err := client.Resource(configMaps).List(ctx, metav1.ListOptions{FieldSelector: "metadata.namespace=" + w.namespace})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		if item.Namespace != w.namespace {
			return fmt.Errorf("%s/%s is in another namespace", item.Namespace, item.Name)
		}
	}
	one, err := client.Resource(configMaps).Namespace(w.namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if one.UID == "" || one.ResourceVersion == "" {
		return fmt.Errorf("the metadata is %v", one.ObjectMeta)
	}
	return equal("the namespace", one.Namespace, w.namespace)
}
