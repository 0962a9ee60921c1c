// Command messages reads references.tsv on its standard input and writes the protobuf messages on the path to each
// reference, from the tags of Kubernetes' own types. See README.md.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsbeta "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationbeta "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
)

// besides are further fields: those that determine the type of a reference, and those that Atoll writes itself.
var besides = []string{
	"apiVersion", "kind", "resource", "name", "namespace", "generateName", "labels", "annotations",
	"nodeName", "nodeSelector", "tolerations", "type", "data",
}

// words are the sibling lists of names: the types of the names, and lists that are counted with them.
var words = []string{"apiGroups", "resources", "verbs", "nonResourceURLs"}

// alike are places other than references, of every kind that has them (`EVERY_OBJECT` and `additions` in generate.rs).
var alike = []string{
	"metadata.ownerReferences[].name", "metadata.managedFields[].fieldsV1", "metadata.uid", "status.conditions[].message", "spec.nodeName",
	"status.evaluationError", "status.resourceRules[].resourceNames[]",
	"spec.healthCheckNodePort", "spec.ports[].nodePort", "spec.ports[].port", "spec.ports[].protocol",
}

// bytes are messages whose first field contains JSON.
var bytes = []reflect.Type{reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]()}

type field struct {
	numbers []string
	shape   string
	holds   reflect.Type
}

func main() {
	for _, add := range []func(*runtime.Scheme) error{
		apiextensions.AddToScheme, apiextensionsbeta.AddToScheme, apiregistration.AddToScheme, apiregistrationbeta.AddToScheme,
	} {
		if err := add(scheme.Scheme); err != nil {
			panic(err)
		}
	}
	lines := map[string]bool{}
	note := func(t reflect.Type, key string, f field) {
		holds := "text"
		switch {
		case slices.Contains(bytes, f.holds):
			holds = "json"
			f.numbers = append(slices.Clone(f.numbers), "1")
		case f.holds.Kind() == reflect.Struct:
			holds = name(f.holds)
		case f.holds.Kind() == reflect.Int32:
			holds = "number"
		}
		lines[strings.Join([]string{"field", name(t), key, strings.Join(f.numbers, "."), f.shape, holds}, "\t")] = true
	}

	follow := func(at reflect.Type, path string, exists bool) {
		for _, step := range append(strings.Split(path, "."), "") {
			if at.Kind() != reflect.Struct || slices.Contains(bytes, at) {
				break
			}
			for _, key := range besides {
				if f, ok := find(at, key); ok {
					note(at, key, f)
				}
			}
			for _, key := range words {
				if f, ok := find(at, key); ok && f.holds.Kind() == reflect.String {
					note(at, key, f)
				}
			}
			key := strings.TrimRight(step, "[]{}")
			if key == "" {
				break
			}
			f, ok := find(at, key)
			if !ok && exists {
				panic(path)
			}
			if !ok {
				break
			}
			note(at, key, f)
			at = f.holds
		}
	}

	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		columns := strings.Split(in.Text(), "\t")
		if strings.HasPrefix(in.Text(), "#") || columns[3] == "RAW" {
			continue
		}
		kind := schema.GroupVersionKind{Group: columns[0], Version: columns[1], Kind: columns[2]}
		at := scheme.Scheme.AllKnownTypes()[kind]
		if at == nil {
			fmt.Fprintln(os.Stderr, "no type:", kind)
			continue
		}
		if _, ok := reflect.PointerTo(at).MethodByName("Marshal"); !ok {
			fmt.Fprintln(os.Stderr, "no protobuf:", kind)
			continue
		}
		lines[strings.Join([]string{"kind", kind.Group, kind.Version, kind.Kind, name(at)}, "\t")] = true
		follow(at, columns[4], true)
		for _, path := range alike {
			follow(at, path, false)
		}
	}
	sorted := []string{}
	for line := range lines {
		sorted = append(sorted, line)
	}
	slices.Sort(sorted)
	fmt.Println("#kind\tgroup\tversion\tkind\tmessage\n#field\tmessage\tJSON key\tnumbers\tshape\tholds")
	fmt.Println(strings.Join(sorted, "\n"))
}

// find returns a field by its JSON key. It has several numbers if JSON omits a message in between (`inline`).
func find(t reflect.Type, key string) (field, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		json := strings.Split(f.Tag.Get("json"), ",")
		if len(tag) < 2 {
			continue
		}
		if json[0] == "" {
			if inner, ok := find(f.Type, key); ok {
				inner.numbers = append([]string{tag[1]}, inner.numbers...)
				return inner, true
			}
			continue
		}
		if json[0] != key {
			continue
		}
		shape, holds := "one", f.Type
		switch {
		case holds.Kind() == reflect.Map:
			shape, holds = "map", holds.Elem()
		case holds.Kind() == reflect.Slice && holds.Elem().Kind() != reflect.Uint8:
			shape, holds = "many", holds.Elem()
		}
		if holds.Kind() == reflect.Pointer {
			holds = holds.Elem()
		}
		if k := holds.Kind(); k != reflect.Struct && k != reflect.String && k != reflect.Slice && k != reflect.Int32 {
			return field{}, false
		}
		return field{[]string{tag[1]}, shape, holds}, true
	}
	return field{}, false
}

// name is the message's full name, as in generated.proto.
func name(t reflect.Type) string {
	return strings.NewReplacer("/", ".", "-", "_").Replace(t.PkgPath()) + "." + t.Name()
}
