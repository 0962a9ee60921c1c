// informer runs client-go informers of some resources in all namespaces, by default of ConfigMaps, and writes ConfigMaps, by
// default fifty times per second. At the end, it compares the objects and resource versions in the stores of the informers
// with new lists.
//
// It prints "writing" when it has begun, and at the end one line "N objects, N events, N writes, N failed writes". It
// exits with 1 if a store differs, or if it received an event (key, resourceVersion, type of event) twice.
//
// It counts failed writes and continues, because the suite kills processes on the route.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// objects is the number of ConfigMaps that are written in turns.
const objects = 40

// seen counts events by their contents.
type seen struct {
	mu     sync.Mutex
	events map[string]int
}

func (s *seen) note(kind, resource string, object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	seen, err := meta.Accessor(object)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[fmt.Sprintf("%s %s %s/%s %s", kind, resource, seen.GetNamespace(), seen.GetName(), seen.GetResourceVersion())]++
}

// version is the resourceVersion of an object.
func version(object any) string {
	known, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return known.GetResourceVersion()
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	namespace := flag.String("namespace", "informer", "where to write; it must exist")
	duration := flag.Duration("duration", 20*time.Second, "how long to write")
	pause := flag.Duration("pause", 20*time.Millisecond, "the time between two writes")
	names := flag.String("resources", "configmaps.v1.", "what to watch: RESOURCE.VERSION.GROUP, separated by commas")
	flag.Parse()
	var resources []schema.GroupVersionResource
	for _, name := range strings.Split(*names, ",") {
		resource, _ := schema.ParseResourceArg(name)
		if resource == nil {
			fmt.Fprintf(os.Stderr, "%q is not RESOURCE.VERSION.GROUP\n", name)
			os.Exit(2)
		}
		resources = append(resources, *resource)
	}
	if err := run(*kubeconfig, *namespace, *duration, *pause, resources); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string, duration, pause time.Duration, resources []schema.GroupVersionResource) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	config.Timeout = 0
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	config.Timeout = 5 * time.Second
	writer, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	factory := informers.NewSharedInformerFactory(client, 0)
	stores := map[schema.GroupVersionResource]cache.Store{}
	var synced []cache.InformerSynced
	events := &seen{events: map[string]int{}}
	for _, resource := range resources {
		generic, err := factory.ForResource(resource)
		if err != nil {
			return err
		}
		informer, name := generic.Informer(), resource.Resource
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(object any) { events.note("add", name, object) },
			UpdateFunc: func(before, after any) {
				// A relist after a lost watch contains known objects, which are no new events.
				if version(before) != version(after) {
					events.note("update", name, after)
				}
			},
			DeleteFunc: func(object any) { events.note("delete", name, object) },
		}); err != nil {
			return err
		}
		stores[resource] = informer.GetStore()
		synced = append(synced, informer.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("the informers did not sync")
	}
	fmt.Println("writing")
	writes, failed := write(ctx, writer, namespace, duration, pause)

	deadline := time.Now().Add(40 * time.Second)
	for {
		differences, count, err := compareAll(ctx, writer, stores)
		if err == nil && len(differences) == 0 {
			fmt.Printf("%d objects, %d events, %d writes, %d failed writes\n", count, len(events.events), writes, failed)
			return events.twice()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a store differs from a fresh list: %v %v", differences, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func write(
	ctx context.Context, client dynamic.Interface, namespace string, duration, pause time.Duration,
) (writes, failed int) {
	configMaps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); <-ticker.C {
		name := fmt.Sprintf("written-%d", rand.IntN(objects))
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   map[string]any{"name": name},
			"data":       map[string]any{"at": time.Now().String()},
		}}
		var err error
		switch rand.IntN(4) {
		case 0:
			err = configMaps.Delete(ctx, name, metav1.DeleteOptions{})
		case 1:
			_, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
		default:
			_, err = configMaps.Update(ctx, object, metav1.UpdateOptions{})
		}
		writes++
		// Conflicts and missing objects are expected too.
		if err != nil {
			failed++
		}
	}
	return writes, failed
}

func compareAll(
	ctx context.Context, client dynamic.Interface, stores map[schema.GroupVersionResource]cache.Store,
) (differences []string, objects int, err error) {
	for resource, store := range stores {
		differing, count, err := compare(ctx, client.Resource(resource), store)
		if err != nil {
			return nil, 0, err
		}
		for _, difference := range differing {
			differences = append(differences, resource.Resource+" "+difference)
		}
		objects += count
	}
	return differences, objects, nil
}

func compare(
	ctx context.Context, client dynamic.NamespaceableResourceInterface, store cache.Store,
) ([]string, int, error) {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	var differences []string
	listed := map[string]bool{}
	for _, item := range list.Items {
		key := item.GetName()
		if item.GetNamespace() != "" {
			key = item.GetNamespace() + "/" + key
		}
		listed[key] = true
		stored, exists, _ := store.GetByKey(key)
		switch {
		case !exists:
			differences = append(differences, key+" is missing in the store")
		case version(stored) != item.GetResourceVersion():
			differences = append(differences, key+" has another resourceVersion in the store")
		}
	}
	for _, key := range store.ListKeys() {
		if !listed[key] {
			differences = append(differences, key+" is only in the store")
		}
	}
	return differences, len(list.Items), nil
}

func (s *seen) twice() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for event, count := range s.events {
		if count > 1 {
			return fmt.Errorf("%q was seen %d times", event, count)
		}
	}
	return nil
}
