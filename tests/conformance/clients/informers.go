package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// gates sets one feature gate, and keeps the defaults of client-go for the others.
type gates struct {
	clientfeatures.Gates
	watchList bool
}

func (g gates) Enabled(feature clientfeatures.Feature) bool {
	if feature == clientfeatures.WatchListClient {
		return g.watchList
	}
	return g.Gates.Enabled(feature)
}

// With sendInitialEvents, the default of client-go.
func informersWatchList(ctx context.Context, w *world) error {
	return informed(ctx, w, true)
}

// With an initial list, like older clients.
func informersListAndWatch(ctx context.Context, w *world) error {
	return informed(ctx, w, false)
}

func informed(ctx context.Context, w *world, watchList bool) error {
	before := clientfeatures.FeatureGates()
	clientfeatures.ReplaceFeatureGates(gates{before, watchList})
	defer clientfeatures.ReplaceFeatureGates(before)
	factory := informers.NewSharedInformerFactory(w.kube, 0)
	maps := factory.Core().V1().ConfigMaps()
	informer := maps.Informer()
	lister := maps.Lister().ConfigMaps(w.namespace)
	ctx, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	if err := synced(ctx, informer); err != nil {
		return err
	}
	name := fmt.Sprintf("informed-%t", watchList)
	client := w.kube.CoreV1().ConfigMaps(w.namespace)
	made, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := eventually(ctx, func() error {
		known, err := lister.Get(name)
		if err != nil {
			return err
		}
		return equal("the version in the store", known.ResourceVersion, made.ResourceVersion)
	}); err != nil {
		return err
	}
	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := eventually(ctx, func() error {
		if _, err := lister.Get(name); err == nil {
			return errors.New("what was deleted is still in the store")
		}
		return nil
	}); err != nil {
		return err
	}
	return sameAsList(ctx, w, informer)
}

// sameAsList compares the store of ConfigMaps and their versions with a list.
func sameAsList(ctx context.Context, w *world, informer cache.SharedIndexInformer) error {
	return eventually(ctx, func() error {
		list, err := w.kube.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := equal("the number of objects in the store", len(informer.GetStore().ListKeys()), len(list.Items)); err != nil {
			return err
		}
		for _, item := range list.Items {
			known, exists, err := informer.GetStore().GetByKey(item.Namespace + "/" + item.Name)
			if err != nil || !exists {
				return fmt.Errorf("%s/%s is not in the store: %w", item.Namespace, item.Name, err)
			}
			version := known.(metav1.Object).GetResourceVersion()
			if err := equal("the version of "+item.Name, version, item.ResourceVersion); err != nil {
				return err
			}
		}
		return nil
	})
}

func informersMetadata(ctx context.Context, w *world) error {
	client, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	informer := factory.ForResource(deployments).Informer()
	ctx, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	if err := synced(ctx, informer); err != nil {
		return err
	}
	list, err := w.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return equal("the number of Deployments", len(informer.GetStore().ListKeys()), len(list.Items))
}

func synced(ctx context.Context, informer cache.SharedIndexInformer) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the informer did not sync within 20 s")
	}
	return nil
}
