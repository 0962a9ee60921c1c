// Command fake-kubelet serves the part of a kubelet's API that kube-apiserver
// calls for pods: logs, exec, attach and port-forward, for every node of a
// test cluster. kwok plays the life of nodes and pods; its own server for
// these loses exit codes, never ends a command's standard input and gives all
// pods one log, hence this one.
//
// It also is the way from kube-apiserver to pod addresses (an HTTP CONNECT
// proxy, named in the API server's egress selector), so that pods/proxy and
// services/proxy answer and nothing is ever sent off the loopback interface.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/flushwriter"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	crilogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second

	// Pod ports with a meaning of their own; every other one is the HTTP server.
	echoPort    = 7
	refusedPort = 9

	// A container of this name writes a line every tickEvery while followed.
	tickerName = "ticker"
	tickEvery  = 200 * time.Millisecond
)

type server struct {
	client   kubernetes.Interface
	dir      string // one folder per pod
	targets  string // file: "ADDRESS:PORT HOST:PORT" lines, read at each dial
	httpAddr string // the HTTP server that pods appear to run

	logMu sync.Mutex

	childMu  sync.Mutex
	children map[int]struct{}
}

func main() {
	var (
		s          = &server{children: map[int]struct{}{}}
		kubeconfig = flag.String("kubeconfig", "", "kubeconfig that may get pods")
		listen     = flag.String("listen", "", "address of the kubelet API (TLS)")
		egress     = flag.String("egress-listen", "", "address of the CONNECT proxy to pods (TLS)")
		cert       = flag.String("tls-cert-file", "", "serving certificate")
		key        = flag.String("tls-private-key-file", "", "its key")
		ca         = flag.String("client-ca-file", "", "CA that callers' certificates must be signed by")
	)
	flag.StringVar(&s.dir, "pods-dir", "", "folder for the pods' logs and files")
	flag.StringVar(&s.targets, "targets", "", "file that maps pod addresses to real ones")
	flag.StringVar(&s.httpAddr, "http-listen", "", "address of the HTTP server that pods appear to run")
	flag.Parse()
	log.SetFlags(log.Ldate | log.Ltime | log.Lmicroseconds)

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		log.Fatalf("no certificate in %s", *ca)
	}

	serve := func(addr string, handler http.Handler) {
		server := &http.Server{
			Addr:      addr,
			Handler:   handler,
			TLSConfig: &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
			// exec, attach, port-forward and CONNECT take over an HTTP/1.1 connection.
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		}
		log.Fatal(server.ListenAndServeTLS(*cert, *key))
	}
	go func() { log.Fatal(http.ListenAndServe(s.httpAddr, http.HandlerFunc(servePod))) }()
	go serve(*egress, http.HandlerFunc(s.serveConnect))
	go serve(*listen, s.routes())
	log.Printf("serving the kubelet API on %s, pods' HTTP on %s, egress on %s", *listen, s.httpAddr, *egress)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	log.Printf("stopping: %v", <-stop)
	s.childMu.Lock()
	for pid := range s.children {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{ns}/{pod}/{container}", s.serveLogs)
	for _, uid := range []string{"", "/{uid}"} {
		mux.HandleFunc("/exec/{ns}/{pod}"+uid+"/{container}", s.serveExec)
		mux.HandleFunc("/attach/{ns}/{pod}"+uid+"/{container}", s.serveAttach)
		mux.HandleFunc("/portForward/{ns}/{pod}"+uid, s.servePortForward)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s upgrade=%q", r.Method, r.URL.RequestURI(), r.Header.Get("Upgrade"))
		mux.ServeHTTP(w, r)
	})
}

// container is one container of a live pod, with a folder of its own.
type container struct {
	pod  *corev1.Pod
	name string
	dir  string // working directory of its commands
	log  string // in the format that the container runtime interface fixes
}

// find answers false after having written the error.
func (s *server) find(w http.ResponseWriter, r *http.Request) (*container, bool) {
	pod, err := s.client.CoreV1().Pods(r.PathValue("ns")).Get(r.Context(), r.PathValue("pod"), metav1.GetOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil, false
	}
	base := filepath.Join(s.dir, fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID))
	c := &container{pod: pod, name: r.PathValue("container")}
	if c.name == "" { // port-forward names none
		return c, true
	}
	c.dir, c.log = filepath.Join(base, c.name), filepath.Join(base, c.name+".log")
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil, false
	}
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if _, err := os.Stat(c.log); errors.Is(err, os.ErrNotExist) {
		for i := 1; i <= 3; i++ {
			_ = c.appendLog("stdout", fmt.Sprintf("line %d of container %s", i, c.name))
		}
	}
	return c, true
}

func (c *container) appendLog(stream, line string) error {
	f, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s F %s\n", time.Now().UTC().Format(time.RFC3339Nano), stream, line)
	return err
}

// ---- logs

func (s *server) serveLogs(w http.ResponseWriter, r *http.Request) {
	c, ok := s.find(w, r)
	if !ok {
		return
	}
	q := r.URL.Query()
	opts := &crilogs.LogOptions{Follow: q.Get("follow") == "true", Timestamp: q.Get("timestamps") == "true"}
	number := func(name string) *int64 {
		if n, err := strconv.ParseInt(q.Get(name), 10, 64); err == nil {
			return &n
		}
		return nil
	}
	opts.TailLines, opts.LimitBytes = number("tailLines"), number("limitBytes")
	if n := number("sinceSeconds"); n != nil {
		opts.Since = time.Now().Add(-time.Duration(*n) * time.Second)
	}
	if t, err := time.Parse(time.RFC3339, q.Get("sinceTime")); err == nil {
		opts.Since = t
	}
	if q.Get("previous") == "true" {
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", c.name, c.pod.Name), http.StatusBadRequest)
		return
	}
	out := flushwriter.Wrap(w)
	var stdout, stderr io.Writer = out, out
	switch q.Get("stream") {
	case "Stdout":
		stderr = nil
	case "Stderr":
		stdout = nil
	}
	w.Header().Set("Transfer-Encoding", "chunked")
	if opts.Follow {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
	}
	if err := s.readLog(r.Context(), c, opts, stdout, stderr); err != nil {
		log.Printf("logs of %s/%s: %v", c.pod.Namespace, c.pod.Name, err)
	}
}

func (s *server) readLog(ctx context.Context, c *container, opts *crilogs.LogOptions, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if opts.Follow && c.name == tickerName {
		go func() {
			for n := 1; ctx.Err() == nil; n++ {
				_ = c.appendLog("stdout", fmt.Sprintf("tick %d", n))
				select {
				case <-ctx.Done():
				case <-time.After(tickEvery):
				}
			}
		}()
	}
	return crilogs.ReadLogs(ctx, c.log, c.name, opts, status{s: s, pod: c.pod}, stdout, stderr)
}

// status tells a follower whether the container still runs.
type status struct {
	criapi.RuntimeService
	s   *server
	pod *corev1.Pod
}

func (st status) ContainerStatus(ctx context.Context, _ string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	state := runtimeapi.ContainerState_CONTAINER_RUNNING
	pod, err := st.s.client.CoreV1().Pods(st.pod.Namespace).Get(ctx, st.pod.Name, metav1.GetOptions{})
	if err != nil || pod.UID != st.pod.UID || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		state = runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: state}}, nil
}

// ---- exec

type execer struct {
	s *server
	c *container
}

func (s *server) serveExec(w http.ResponseWriter, r *http.Request) {
	c, ok := s.find(w, r)
	if !ok {
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, execer{s, c}, c.pod.Name, string(c.pod.UID), c.name, r.URL.Query()["command"],
		opts, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (e execer) ExecInContainer(_ context.Context, _, _, _ string, argv []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if len(argv) == 0 {
		return errors.New("no command")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = e.c.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + e.c.dir,
		"HOSTNAME=" + e.c.pod.Name,
		"POD_NAME=" + e.c.pod.Name,
		"POD_NAMESPACE=" + e.c.pod.Namespace,
		"NODE_NAME=" + e.c.pod.Spec.NodeName,
		"CONTAINER=" + e.c.name,
		"CONTAINER_LOG=" + e.c.log,
	}
	var err error
	if tty {
		err = e.runTTY(cmd, in, out, resize)
	} else {
		err = e.run(cmd, in, out, errOut)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code := exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			code = 128 + int(ws.Signal())
		}
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	return err
}

func (e execer) run(cmd *exec.Cmd, in io.Reader, out, errOut io.WriteCloser) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if out != nil {
		cmd.Stdout = out
	}
	if errOut != nil {
		cmd.Stderr = errOut
	}
	var stdin io.WriteCloser
	if in != nil {
		var err error
		if stdin, err = cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer e.s.track(cmd.Process.Pid)()
	if in != nil {
		go func() {
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
	}
	return cmd.Wait()
}

func (e execer) runTTY(cmd *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	term, err := pty.StartWithAttrs(cmd, nil, cmd.SysProcAttr)
	if err != nil {
		return err
	}
	defer term.Close()
	defer e.s.track(cmd.Process.Pid)()
	go func() {
		for size := range resize {
			_ = pty.Setsize(term, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}()
	if in != nil {
		go func() {
			_, _ = io.Copy(term, in)
			// The client is gone: what a terminal's owner would get.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP)
		}()
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if out == nil {
			out = io.Discard
		}
		_, _ = io.Copy(out, term) // ends with EIO when the last holder of the terminal is gone
	}()
	err = cmd.Wait()
	select {
	case <-drained:
	case <-time.After(time.Second): // a background child still holds it
	}
	return err
}

// track lets the server end a command's process group when it is stopped.
func (s *server) track(pid int) func() {
	s.childMu.Lock()
	defer s.childMu.Unlock()
	s.children[pid] = struct{}{}
	return func() {
		s.childMu.Lock()
		defer s.childMu.Unlock()
		delete(s.children, pid)
	}
}

// ---- attach: with standard input the container is `cat`, else it only logs.

func (s *server) serveAttach(w http.ResponseWriter, r *http.Request) {
	c, ok := s.find(w, r)
	if !ok {
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, execer{s, c}, c.pod.Name, string(c.pod.UID), c.name,
		opts, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (e execer) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	go func() {
		for range resize {
		}
	}()
	if in != nil {
		if out == nil {
			_, err := io.Copy(io.Discard, in)
			return err
		}
		_, err := io.Copy(out, in)
		return err
	}
	none := int64(0)
	opts := &crilogs.LogOptions{TailLines: &none, Follow: true}
	var stdout, stderr io.Writer
	if out != nil {
		stdout = out
	}
	if errOut != nil {
		stderr = errOut
	}
	return e.s.readLog(ctx, e.c, opts, stdout, stderr)
}

// ---- port-forward

type forwarder struct {
	s   *server
	pod *corev1.Pod
}

func (s *server) servePortForward(w http.ResponseWriter, r *http.Request) {
	c, ok := s.find(w, r)
	if !ok {
		return
	}
	opts, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{s, c.pod}, c.pod.Name, string(c.pod.UID),
		opts, idleTimeout, creationTimeout, portforward.SupportedProtocols)
}

func (f forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	conn, err := f.s.dial(f.pod.Status.PodIP, int(port))
	if err != nil {
		return err
	}
	relay(stream, conn)
	return nil
}

// dial connects to what stands in for a pod, service or API server address.
func (s *server) dial(host string, port int) (net.Conn, error) {
	want := net.JoinHostPort(host, strconv.Itoa(port))
	if f, err := os.Open(s.targets); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == want {
				return net.Dial("tcp", fields[1])
			}
		}
	}
	if ip := net.ParseIP(host); host == "localhost" || ip.IsLoopback() {
		return net.Dial("tcp", want)
	}
	switch port {
	case echoPort:
		near, far := net.Pipe()
		go func() {
			_, _ = io.Copy(far, far)
			_ = far.Close()
		}()
		return near, nil
	case refusedPort:
		return nil, fmt.Errorf("dial tcp %s: connect: connection refused", want)
	}
	return net.Dial("tcp", s.httpAddr)
}

// relay copies both ways until both have ended, passing on a half-close.
func relay(a io.ReadWriteCloser, b net.Conn) {
	defer a.Close()
	defer b.Close()
	done := make(chan struct{}, 2)
	pass := func(to io.WriteCloser, from io.Reader) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(halfCloser); ok {
			_ = half.CloseWrite()
		} else {
			_ = to.Close()
		}
		done <- struct{}{}
	}
	go pass(b, a)
	go pass(a, b)
	<-done
	<-done
}

// serveConnect is the proxy that kube-apiserver reaches pods and nodes through.
func (s *server) serveConnect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	host, port, err := net.SplitHostPort(r.Host)
	n, err2 := strconv.Atoi(port)
	if err := errors.Join(err, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	far, err := s.dial(host, n)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		return
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = near.Close()
		_ = far.Close()
		return
	}
	relay(readAhead{near.(halfCloser), buffered.Reader}, far)
}

type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// readAhead is a hijacked connection with the bytes already read from it.
type readAhead struct {
	halfCloser
	from *bufio.Reader
}

func (c readAhead) Read(p []byte) (int, error) { return c.from.Read(p) }

// ---- the HTTP server that every pod appears to run

func servePod(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/status/"):
		code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/status/"))
		if err != nil || code < 200 || code > 599 {
			code = http.StatusBadRequest
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, "status %d\n", code)
	case r.URL.Path == "/stream":
		n := between(r.URL.Query(), "n", 5, 1, 10000)
		wait := time.Duration(between(r.URL.Query(), "ms", 100, 0, 10000)) * time.Millisecond
		for i := 1; i <= n; i++ {
			fmt.Fprintf(w, "part %d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(wait):
			}
		}
	case r.URL.Path == "/upgrade":
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, buffered)
	default:
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "uri": r.URL.RequestURI(), "host": r.Host, "headers": r.Header, "body": string(body),
		})
	}
}

func between(q url.Values, name string, fallback, low, high int) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil {
		n = fallback
	}
	return min(max(n, low), high)
}
