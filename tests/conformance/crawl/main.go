// crawl requests all resources of a cluster in every format, and searches all responses for forbidden words.
//
// It requests lists, single objects and watches of all kinds in discovery, in JSON and protobuf, as Tables and as metadata;
// discovery, OpenAPI and errors. It reports each word that --forbid or --foreign matches, with its place, and exits with 1.
// It searches signed data only for --foreign, because the token of a service account contains the name of its namespace on
// the host. --uids is a file with the uids of foreign objects, one a line. For each kind, it prints the number of objects with
// --own in their name or labels.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	inJSON     = "application/json"
	inProtobuf = "application/vnd.kubernetes.protobuf"
	table      = ";as=Table;v=v1;g=meta.k8s.io"
	partial    = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	partials   = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// encoded matches text that may be base64: data of Secrets, continue tokens.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}={0,2}`)

// signed matches a JSON Web Token (RFC 7519). Its first part is an object.
var signed = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

// identifier matches a uid.
var identifier = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

type crawler struct {
	client    *http.Client
	base      string
	forbidden *regexp.Regexp
	foreign   *regexp.Regexp
	uids      map[string]bool
	own       string

	mutex   sync.Mutex
	answers int
	bytes   int
	found   map[string]bool
}

type resource struct {
	Name, Kind string
	Namespaced bool
	Verbs      []string
}

type object struct {
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	forbid := flag.String("forbid", "", "what no answer may hold, as a regular expression")
	foreign := flag.String("foreign", "", "what not even a signed token may hold, as a regular expression")
	uids := flag.String("uids", "", "a file with uids that no answer may hold")
	own := flag.String("own", "", "what the cluster's own objects have in their names or labels")
	flag.Parse()
	c, err := start(*kubeconfig, *forbid, *foreign, *uids, *own)
	if err == nil {
		err = c.all(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%d answers with %d bytes\n", c.answers, c.bytes)
	if len(c.found) > 0 {
		os.Exit(1)
	}
}

func start(kubeconfig, forbid, foreign, uids, own string) (*crawler, error) {
	words := make([]*regexp.Regexp, 2)
	for i, text := range []string{forbid, foreign} {
		if text == "" {
			return nil, errors.New("--forbid and --foreign say what to look for")
		}
		compiled, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		words[i] = compiled
	}
	known := map[string]bool{}
	if uids != "" {
		text, err := os.ReadFile(uids)
		if err != nil {
			return nil, err
		}
		for _, uid := range strings.Fields(string(text)) {
			known[uid] = true
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Timeout = 60 * time.Second
	return &crawler{
		client: client, base: strings.TrimSuffix(config.Host, "/"), forbidden: words[0], foreign: words[1], uids: known, own: own,
		found: map[string]bool{},
	}, nil
}

// ask sends a request, and searches the response, also if it is an error.
func (c *crawler) ask(ctx context.Context, method, path, accept, body string) ([]byte, int, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", inJSON)
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s: %w", method, path, err)
	}
	c.mutex.Lock()
	c.answers++
	c.bytes += len(text)
	c.mutex.Unlock()
	where := fmt.Sprintf("%s %s (%s): %d", method, path, accept, response.StatusCode)
	c.look(where, text)
	var headers bytes.Buffer
	if err := response.Header.Write(&headers); err != nil {
		return nil, 0, err
	}
	c.look(where+", headers", headers.Bytes())
	return text, response.StatusCode, nil
}

// look reports forbidden words in a text, and in the data that is encoded in it.
func (c *crawler) look(where string, text []byte) {
	for _, token := range signed.FindAll(text, -1) {
		for _, part := range bytes.Split(token, []byte(".")) {
			if plain, err := base64.RawURLEncoding.DecodeString(string(part)); err == nil {
				c.report(c.foreign, where+", signed", plain)
				c.identify(where+", signed", plain)
			}
		}
	}
	c.identify(where, text)
	text = signed.ReplaceAll(text, []byte("TOKEN"))
	c.report(c.forbidden, where, text)
	c.report(c.foreign, where, text)
	for _, word := range encoded.FindAll(text, -1) {
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if plain, err := alphabet.DecodeString(strings.TrimRight(string(word), "=")); err == nil {
				c.look(where+", decoded", plain)
				break
			}
		}
	}
}

// identify reports the uids of foreign objects.
func (c *crawler) identify(where string, text []byte) {
	for _, at := range identifier.FindAllIndex(text, -1) {
		if c.uids[string(text[at[0]:at[1]])] {
			c.match(where, text, at)
		}
	}
}

// report prints the matches of an expression.
func (c *crawler) report(words *regexp.Regexp, where string, text []byte) {
	for _, at := range words.FindAllIndex(text, -1) {
		c.match(where, text, at)
	}
}

// match prints a match, once for each word and path.
func (c *crawler) match(where string, text []byte, at []int) {
	word := string(text[at[0]:at[1]])
	path, _, _ := strings.Cut(where, "?")
	c.mutex.Lock()
	known := c.found[word+path]
	c.found[word+path] = true
	c.mutex.Unlock()
	if !known {
		around := text[max(0, at[0]-120):min(len(text), at[1]+60)]
		fmt.Printf("FOUND %q in %s: %q\n", word, where, around)
	}
}

func (c *crawler) get(ctx context.Context, path string, accepts ...string) error {
	for _, accept := range accepts {
		if _, _, err := c.ask(ctx, http.MethodGet, path, accept, ""); err != nil {
			return err
		}
	}
	return nil
}

func (c *crawler) read(ctx context.Context, path string, into any) error {
	text, code, err := c.ask(ctx, http.MethodGet, path, inJSON, "")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("%s: %d: %s", path, code, text)
	}
	return json.Unmarshal(text, into)
}

func (c *crawler) all(ctx context.Context) error {
	discovery := inJSON + ";as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io"
	for _, path := range []string{"/api", "/apis"} {
		if err := c.get(ctx, path, inJSON, inProtobuf, discovery); err != nil {
			return err
		}
	}
	if err := c.get(ctx, "/openapi/v2", inJSON, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"); err != nil {
		return err
	}
	for _, path := range []string{"/version", "/livez?verbose", "/readyz?verbose", "/", "/metrics", "/logs", "/no/such/path"} {
		if err := c.get(ctx, path, inJSON); err != nil {
			return err
		}
	}
	var documents struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := c.read(ctx, "/openapi/v3", &documents); err != nil {
		return err
	}
	for _, document := range documents.Paths {
		if err := c.get(ctx, document.ServerRelativeURL, inJSON); err != nil {
			return err
		}
	}
	var groups struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	if err := c.read(ctx, "/apis", &groups); err != nil {
		return err
	}
	versions := []string{"/api/v1"}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			versions = append(versions, "/apis/"+version.GroupVersion)
		}
	}
	kinds, ctx := errgroup.WithContext(ctx)
	kinds.SetLimit(6)
	for _, version := range versions {
		var list struct{ Resources []resource }
		if err := c.read(ctx, version, &list); err != nil {
			return err
		}
		if err := c.get(ctx, version, inProtobuf); err != nil {
			return err
		}
		for _, resource := range list.Resources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			kinds.Go(func() error {
				if err := c.resource(ctx, version, resource); err != nil {
					return fmt.Errorf("%s of %s: %w", resource.Name, version, err)
				}
				return nil
			})
		}
	}
	return kinds.Wait()
}

func (c *crawler) resource(ctx context.Context, version string, kind resource) error {
	path := version + "/" + kind.Name
	lists := []string{inJSON, inProtobuf, inJSON + table, inJSON + partials, inProtobuf + partials}
	if err := c.get(ctx, path, lists...); err != nil {
		return err
	}
	for _, include := range []string{"None", "Object"} {
		if err := c.get(ctx, path+"?includeObject="+include, inJSON+table); err != nil {
			return err
		}
	}
	if err := c.refusals(ctx, path, kind); err != nil {
		return err
	}
	if err := c.pages(ctx, path); err != nil {
		return err
	}
	if slices.Contains(kind.Verbs, "watch") {
		if err := c.watches(ctx, path, ""); err != nil {
			return err
		}
	}
	text, code, err := c.ask(ctx, http.MethodGet, path, inJSON, "")
	if err != nil || code != http.StatusOK {
		// The response to a refused list was searched too.
		return err
	}
	var list struct{ Items []object }
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	own, namespaces := 0, map[string]bool{}
	for _, item := range list.Items {
		if strings.Contains(item.Metadata.Name, c.own) || item.Metadata.Labels["own"] == c.own {
			own++
		}
		one := path + "/" + item.Metadata.Name
		if kind.Namespaced {
			within := version + "/namespaces/" + item.Metadata.Namespace + "/" + kind.Name
			one = within + "/" + item.Metadata.Name
			if !namespaces[within] {
				namespaces[within] = true
				if err := c.get(ctx, within, lists...); err != nil {
					return err
				}
				if strings.Contains(item.Metadata.Namespace, c.own) && slices.Contains(kind.Verbs, "watch") {
					if err := c.watches(ctx, within, one); err != nil {
						return err
					}
				}
			}
		}
		forms := []string{inJSON, inProtobuf, inJSON + table, inJSON + partial, inProtobuf + partial}
		if err := c.get(ctx, one, forms...); err != nil {
			return err
		}
		for _, subresource := range []string{"/status", "/scale"} {
			if err := c.get(ctx, one+subresource, inJSON, inProtobuf); err != nil {
				return err
			}
		}
	}
	fmt.Printf("own %s %d\n", strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"), own)
	return nil
}

// watches opens a watch of every form, with and without initial events. The hub of an agent serves those in JSON. If touched
// is the path of an object, it changes the object meanwhile, which is an event for the watches of all clusters.
func (c *crawler) watches(ctx context.Context, path, touched string) error {
	const state = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	const zero, one = "&resourceVersion=0", "&resourceVersion=1"
	var watches errgroup.Group
	for _, watch := range []struct{ query, accept string }{
		{state, inJSON}, {state + zero, inJSON}, {zero, inJSON}, {"", inJSON},
		{state, inProtobuf}, {zero, inJSON + table}, {zero, inProtobuf + partial}, {one, inProtobuf},
	} {
		watches.Go(func() error {
			return c.get(ctx, path+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=1"+watch.query, watch.accept)
		})
	}
	if touched != "" {
		watches.Go(func() error {
			_, _, err := c.ask(ctx, http.MethodPatch, touched, inJSON, `{"metadata":{"annotations":{"touched":"yes"}}}`)
			return err
		})
	}
	return watches.Wait()
}

// refusals requests objects that do not exist, and invalid objects.
func (c *crawler) refusals(ctx context.Context, path string, kind resource) error {
	if err := c.get(ctx, path+"/no-such-object", inJSON, inProtobuf); err != nil {
		return err
	}
	if err := c.get(ctx, path+"?labelSelector=%21%21&fieldSelector=a%3Db", inJSON, inProtobuf); err != nil {
		return err
	}
	at := path
	if kind.Namespaced {
		slash := strings.LastIndex(path, "/")
		at = path[:slash] + "/namespaces/default" + path[slash:]
		if err := c.get(ctx, path[:slash]+"/namespaces/no-such-namespace"+path[slash:], inJSON, inProtobuf); err != nil {
			return err
		}
	}
	for _, body := range []string{`{"metadata":{"name":"Not A Name"},"spec":{"x":1}}`, `{"metadata":[]}`, `{`} {
		for _, accept := range []string{inJSON, inProtobuf} {
			if _, _, err := c.ask(ctx, http.MethodPost, at+"?dryRun=All", accept, body); err != nil {
				return err
			}
		}
	}
	return nil
}

// pages follows continue tokens, and searches them too.
func (c *crawler) pages(ctx context.Context, path string) error {
	next := path + "?limit=2"
	for range 20 {
		text, code, err := c.ask(ctx, http.MethodGet, next, inJSON, "")
		if err != nil || code != http.StatusOK {
			return err
		}
		if err := c.get(ctx, next, inProtobuf); err != nil {
			return err
		}
		var page struct{ Metadata struct{ Continue string } }
		if err := json.Unmarshal(text, &page); err != nil {
			return err
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		next = path + "?limit=2&continue=" + page.Metadata.Continue
	}
	return nil
}
