// clients checks the clients of client-go and controller-runtime with a cluster: typed clients in protobuf, dynamic and
// metadata clients, shared informers, leader election, apply configurations, streams, discovery, controller-runtime.
//
// The program does not know whether the cluster is virtual. A check that fails on a plain cluster is wrong. The program
// creates one namespace, and deletes it at the end. It prints one line for each check, "ok NAME (TIME)" or
// "FAILED NAME: REASON", and exits with 1 if a check has failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// limit is the time limit of a check.
const limit = 60 * time.Second

// world is the shared state of the checks. Each check has its own objects.
type world struct {
	config    *rest.Config
	kube      kubernetes.Interface
	namespace string
}

// check is a check with its name.
type check struct {
	name string
	run  func(context.Context, *world) error
}

func checks() []check {
	return []check{
		{"discovery/aggregated", discoveryAggregated},
		{"discovery/legacy", discoveryLegacy},
		{"discovery/restmapper", discoveryRESTMapper},
		{"discovery/openapi", discoveryOpenAPI},
		{"typed/protobuf", typedProtobuf},
		{"typed/json", typedJSON},
		{"typed/deployment", typedDeployment},
		{"typed/delete-options", typedDeleteOptions},
		{"typed/chunks", typedChunks},
		{"typed/watch", typedWatch},
		{"typed/reviews", typedReviews},
		{"typed/rbac", typedRBAC},
		{"dynamic", dynamicClient},
		{"metadata", metadataClient},
		{"protobuf/typed", protobufTyped},
		{"protobuf/deployment", protobufDeployment},
		{"protobuf/reviews", protobufReviews},
		{"protobuf/watch-list", protobufWatchList},
		{"protobuf/list-and-watch", protobufListAndWatch},
		{"protobuf/metadata", protobufMetadata},
		{"protobuf/same-as-json", protobufSame},
		{"informers/watch-list", informersWatchList},
		{"informers/list-and-watch", informersListAndWatch},
		{"informers/metadata", informersMetadata},
		{"leader-election", leaderElection},
		{"apply-configurations", applyConfigurations},
		{"streams/exec-websocket", execWebSocket},
		{"streams/exec-spdy", execSPDY},
		{"streams/port-forward-websocket", portForwardWebSocket},
		{"streams/port-forward-spdy", portForwardSPDY},
		{"streams/logs", logsFollow},
		{"controller-runtime/client", runtimeClient},
		{"controller-runtime/cache", runtimeCache},
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	only := flag.String("run", "", "run the checks whose names match this regular expression")
	list := flag.Bool("list", false, "print the names of the checks and exit")
	flag.Parse()
	// The logs of the libraries are only for debugging. Each check reports its own errors.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	if *list {
		for _, check := range checks() {
			fmt.Println(check.name)
		}
		return
	}
	failed, err := runAll(*kubeconfig, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if failed > 0 || err != nil {
		os.Exit(1)
	}
}

func runAll(kubeconfig, only string) (failed int, err error) {
	filter, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	w := &world{config: config, kube: kube, namespace: fmt.Sprintf("clients-%05d", rand.IntN(100000))}
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	if _, err := kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	defer func() {
		if gone := leave(ctx, w); gone != nil && err == nil {
			err = gone
		}
	}()
	if err := eventually(ctx, func() error {
		_, err := kube.CoreV1().ServiceAccounts(w.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return 0, err
	}
	for _, check := range checks() {
		if !filter.MatchString(check.name) {
			continue
		}
		begun := time.Now()
		bounded, cancel := context.WithTimeout(ctx, limit)
		err := check.run(bounded, w)
		cancel()
		if err != nil {
			failed++
			fmt.Printf("FAILED %s: %v\n", check.name, err)
			continue
		}
		fmt.Printf("ok %s (%d ms)\n", check.name, time.Since(begun).Milliseconds())
	}
	return failed, nil
}

// leave deletes the namespace, and waits until it is gone.
func leave(ctx context.Context, w *world) error {
	namespaces := w.kube.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, w.namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		_, err := namespaces.Get(ctx, w.namespace, metav1.GetOptions{})
		switch {
		case err == nil:
			return fmt.Errorf("namespace %s is still there", w.namespace)
		case apierrors.IsNotFound(err):
			return nil
		default:
			return err
		}
	})
}

// eventually calls a function until it returns no error, for at most half a minute. Then it returns the last error.
func eventually(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// equal returns an error if the values differ.
func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, not %v", what, got, want)
	}
	return nil
}
