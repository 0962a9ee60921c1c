// gitops checks the cache of Argo CD's gitops-engine with a cluster. The engine lists and watches every kind in discovery,
// and fails if it cannot read one of them.
//
// The program does not know whether the cluster is virtual. It creates one ConfigMap, and deletes it at the end. It prints
// one line for each check, "ok NAME (TIME)" or "FAILED NAME: REASON", and exits with 1 if a check has failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	// attempts is the maximum number of syncs in which a kind is deleted at the same time.
	attempts = 5
	// limit is the time limit for a change to reach the cache.
	limit = 30 * time.Second
	// quiet is the time for which the watches must continue without a failure.
	quiet = 5 * time.Second
	// periods is the maximum number of such times.
	periods = 6
)

// world is the shared state of the checks.
type world struct {
	config *rest.Config
	maps   interface {
		Create(context.Context, *corev1.ConfigMap, metav1.CreateOptions) (*corev1.ConfigMap, error)
		Delete(context.Context, string, metav1.DeleteOptions) error
	}
	cache     cache.ClusterCache
	complaint *complaints
}

// complaints are the logged failures of the engine. It retries forever, and returns no errors.
type complaints struct {
	mutex sync.Mutex
	texts []string
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	w, err := start(*kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, check := range []struct {
		name string
		run  func(context.Context) error
	}{{"sync", w.sync}, {"kinds", w.kinds}, {"watch", w.watch}, {"quiet", w.quiet}} {
		begun := time.Now()
		if err := check.run(context.Background()); err != nil {
			fmt.Printf("FAILED %s: %v\n", check.name, err)
			os.Exit(1)
		}
		fmt.Printf("ok %s (%d ms)\n", check.name, time.Since(begun).Milliseconds())
	}
}

func start(kubeconfig string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	complaint := &complaints{}
	synced := cache.NewClusterCache(config, cache.SetLogr(complaint.logger()), cache.SetClusterSyncRetryTimeout(0))
	return &world{config, client.CoreV1().ConfigMaps("default"), synced, complaint}, nil
}

// sync reads every kind. Ignore a kind that is deleted between discovery and its list.
func (w *world) sync(context.Context) (err error) {
	for range attempts {
		if err = w.cache.EnsureSynced(); !apierrors.IsNotFound(err) {
			break
		}
		w.complaint.forget()
	}
	if err == nil {
		err = w.cache.GetClusterInfo().SyncError
	}
	return err
}

// kinds checks that the cache has the kinds of every cluster, and objects of them.
func (w *world) kinds(context.Context) error {
	info := w.cache.GetClusterInfo()
	if info.APIsCount < 50 || info.ResourcesCount < 10 {
		return fmt.Errorf("%d kinds and %d objects", info.APIsCount, info.ResourcesCount)
	}
	if w.cache.GetOpenAPISchema() == nil || w.cache.GetGVKParser() == nil {
		return errors.New("no schema")
	}
	for kind, name := range map[string]string{"Namespace": "default", "ConfigMap": "kube-root-ca.crt", "ServiceAccount": "default"} {
		if len(w.find(kind, name)) == 0 {
			return fmt.Errorf("no %s %s", kind, name)
		}
	}
	return nil
}

// watch creates and deletes an object, and waits until the cache has received both events.
func (w *world) watch(ctx context.Context) error {
	const name = "gitops-watched"
	for _, change := range []struct {
		what string
		make func() error
		sees bool
	}{
		{"creation", func() error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err := w.maps.Create(ctx, object, metav1.CreateOptions{})
			return err
		}, true},
		{"deletion", func() error { return w.maps.Delete(ctx, name, metav1.DeleteOptions{}) }, false},
	} {
		heard := make(chan struct{}, 64)
		forget := w.cache.OnResourceUpdated(func(*cache.Resource, *cache.Resource, map[kube.ResourceKey]*cache.Resource) {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
		err := change.make()
		for late := time.After(limit); err == nil && (len(w.find("ConfigMap", name)) > 0) != change.sees; {
			select {
			case <-heard:
			case <-late:
				err = fmt.Errorf("the %s has not arrived after %v", change.what, limit)
			}
		}
		forget()
		if err != nil {
			return err
		}
	}
	return nil
}

// quiet waits until no watch fails for some time, and returns the logged failures of the last period. A watch that ends
// immediately fails in each of them. A busy API server can end a few watches with 410, once.
func (w *world) quiet(context.Context) error {
	var err error
	for range periods {
		time.Sleep(quiet)
		if err = w.complaint.err(); err == nil {
			return nil
		}
		w.complaint.forget()
	}
	return err
}

func (w *world) find(kind, name string) map[kube.ResourceKey]*cache.Resource {
	return w.cache.FindResources("", func(r *cache.Resource) bool {
		return r.ResourceKey().Kind == kind && r.Ref.Name == name
	})
}

func (c *complaints) logger() logr.Logger {
	take := func(_, text string) {
		// The engine logs errors, and logs retries as information. A kind can be deleted while it is watched. Other
		// trials on the same host change definitions of such groups: an API server then forgets the old versions of
		// the kind's objects, and ends the watch with 410.
		if !strings.Contains(text, "Failed to") || strings.Contains(text, "could not find the requested resource") ||
			strings.Contains(text, ".example.com") {
			return
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.texts = append(c.texts, text)
	}
	return funcr.New(take, funcr.Options{Verbosity: 10})
}

func (c *complaints) forget() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.texts = nil
}

func (c *complaints) err() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.texts) == 0 {
		return nil
	}
	return fmt.Errorf("%d complaints: %s", len(c.texts), strings.Join(c.texts, "; "))
}
