package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func runtimeClient(ctx context.Context, w *world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "runtime", Namespace: w.namespace}}
	for _, want := range []controllerutil.OperationResult{
		controllerutil.OperationResultCreated, controllerutil.OperationResultNone,
	} {
		result, err := controllerutil.CreateOrUpdate(ctx, c, object, func() error {
			object.Data = map[string]string{"a": "1"}
			return nil
		})
		if err != nil {
			return err
		}
		if err := equal("the operation", result, want); err != nil {
			return err
		}
	}
	patched := object.DeepCopy()
	patched.Data["b"] = "2"
	if err := c.Patch(ctx, patched, client.MergeFrom(object)); err != nil {
		return err
	}
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingFields{"metadata.name": "runtime"}); err != nil {
		return err
	}
	if err := equal("the length of the list", len(list.Items), 1); err != nil {
		return err
	}
	if err := c.Delete(ctx, patched); err != nil {
		return err
	}
	return client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object))
}

func runtimeCache(ctx context.Context, w *world) error {
	c, err := cache.New(w.config, cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	defer func() { cancel(); <-ended }()
	var maps corev1.ConfigMapList
	if err := c.List(ctx, &maps); err != nil {
		return err
	}
	if !c.WaitForCacheSync(ctx) {
		return errors.New("the cache did not sync")
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cached", Namespace: w.namespace}}
	if _, err := w.kube.CoreV1().ConfigMaps(w.namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, func() error {
		return c.Get(ctx, client.ObjectKeyFromObject(made), &corev1.ConfigMap{})
	}); err != nil {
		return err
	}
	if err := w.kube.CoreV1().ConfigMaps(w.namespace).Delete(ctx, "cached", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		err := c.Get(ctx, client.ObjectKeyFromObject(made), &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("what was deleted is still in the cache")
	})
}
