package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// shell is a running pod. The first check that needs it creates it.
func shell(ctx context.Context, w *world) error {
	pods := w.kube.CoreV1().Pods(w.namespace)
	if _, err := pods.Get(ctx, "shell", metav1.GetOptions{}); err != nil {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "shell"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "ticker", Image: "busybox"}}},
		}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return eventually(ctx, func() error {
		pod, err := pods.Get(ctx, "shell", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return equal("the phase", pod.Status.Phase, corev1.PodRunning)
	})
}

func (w *world) pod(subresource string) *rest.Request {
	return w.kube.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name("shell").SubResource(subresource)
}

func execWebSocket(ctx context.Context, w *world) error {
	return execute(ctx, w, func(request *rest.Request) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(w.config, http.MethodGet, request.URL().String())
	})
}

func execSPDY(ctx context.Context, w *world) error {
	return execute(ctx, w, func(request *rest.Request) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(w.config, http.MethodPost, request.URL())
	})
}

func execute(ctx context.Context, w *world, by func(*rest.Request) (remotecommand.Executor, error)) error {
	if err := shell(ctx, w); err != nil {
		return err
	}
	executor, err := by(w.pod("exec").VersionedParams(&corev1.PodExecOptions{
		Command: []string{"sh", "-c", "cat; echo problem >&2; exit 3"}, Stdin: true, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec))
	if err != nil {
		return err
	}
	typed := strings.Repeat("0123456789abcdef", 1<<14)
	var out, problem bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{
		Stdin: strings.NewReader(typed), Stdout: &out, Stderr: &problem,
	})
	if err == nil || !strings.Contains(err.Error(), "exit code 3") {
		return fmt.Errorf("the command ended with %w", err)
	}
	if out.String() != typed {
		return fmt.Errorf("%d of %d bytes came back", out.Len(), len(typed))
	}
	return equal("standard error", problem.String(), "problem\n")
}

func portForwardSPDY(ctx context.Context, w *world) error {
	transport, upgrader, err := spdy.RoundTripperFor(w.config)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport}
	return forward(ctx, w, spdy.NewDialer(upgrader, client, http.MethodPost, w.pod("portforward").URL()))
}

func portForwardWebSocket(ctx context.Context, w *world) error {
	dialer, err := portforward.NewSPDYOverWebsocketDialer(w.pod("portforward").URL(), w.config)
	if err != nil {
		return err
	}
	return forward(ctx, w, dialer)
}

func forward(ctx context.Context, w *world, dialer httpstream.Dialer) error {
	if err := shell(ctx, w); err != nil {
		return err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return fmt.Errorf("it ended before it was ready: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return err
	}
	for _, status := range []int{200, 418} {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/status/%d", ports[0].Local, status))
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if err := equal("the status", response.StatusCode, status); err != nil {
			return err
		}
	}
	close(stop)
	return <-ended
}

func logsFollow(ctx context.Context, w *world) error {
	if err := shell(ctx, w); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.kube.CoreV1().Pods(w.namespace).GetLogs("shell", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	for n := range 5 {
		if !lines.Scan() {
			return fmt.Errorf("the log ended after %d lines: %w", n, lines.Err())
		}
	}
	return nil
}
