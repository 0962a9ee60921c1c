module atoll.dev/tests/kube/prometheus-operator

go 1.26.0

// Only for its CustomResourceDefinitions. Nothing is compiled.
require github.com/prometheus-operator/prometheus-operator v0.85.0
