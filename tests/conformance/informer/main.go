// informer runs a client-go informer of ConfigMaps in all namespaces, and writes, by default fifty times per second. At the end, it
// compares the objects and resource versions in the store of the informer with a new list.
//
// It prints "writing" when it has begun, and at the end one line "N objects, N events, N writes, N failed writes". It
// exits with 1 if the store differs, or if it received an event (key, resourceVersion, type of event) twice.
//
// It counts failed writes and continues, because the suite kills processes on the route.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

func (s *seen) note(kind string, object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[kind+" "+configMap.Namespace+"/"+configMap.Name+" "+configMap.ResourceVersion]++
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	namespace := flag.String("namespace", "informer", "where to write; it must exist")
	duration := flag.Duration("duration", 20*time.Second, "how long to write")
	pause := flag.Duration("pause", 20*time.Millisecond, "the time between two writes")
	flag.Parse()
	if err := run(*kubeconfig, *namespace, *duration, *pause); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string, duration, pause time.Duration) error {
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
	informer := factory.Core().V1().ConfigMaps().Informer()
	events := &seen{events: map[string]int{}}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { events.note("add", object) },
		UpdateFunc: func(before, after any) {
			// A relist after a lost watch contains known objects, which are no new events.
			if before.(*corev1.ConfigMap).ResourceVersion != after.(*corev1.ConfigMap).ResourceVersion {
				events.note("update", after)
			}
		},
		DeleteFunc: func(object any) { events.note("delete", object) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the informer did not sync")
	}
	fmt.Println("writing")
	writes, failed := write(ctx, writer, namespace, duration, pause)

	deadline := time.Now().Add(40 * time.Second)
	for {
		differences, count, err := compare(ctx, client, informer.GetStore())
		if err == nil && len(differences) == 0 {
			fmt.Printf("%d objects, %d events, %d writes, %d failed writes\n", count, len(events.events), writes, failed)
			return events.twice()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the store differs from a fresh list: %v %v", differences, err)
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

func compare(ctx context.Context, client kubernetes.Interface, store cache.Store) ([]string, int, error) {
	list, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	var differences []string
	listed := map[string]bool{}
	for _, item := range list.Items {
		key := item.Namespace + "/" + item.Name
		listed[key] = true
		stored, exists, _ := store.GetByKey(key)
		switch {
		case !exists:
			differences = append(differences, key+" is missing in the store")
		case stored.(*corev1.ConfigMap).ResourceVersion != item.ResourceVersion:
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
