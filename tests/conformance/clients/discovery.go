package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

func discoveryAggregated(_ context.Context, w *world) error {
	client, err := discovery.NewDiscoveryClientForConfig(w.config)
	if err != nil {
		return err
	}
	return discovered(client)
}

// Clients without aggregated discovery request each group.
func discoveryLegacy(_ context.Context, w *world) error {
	client, err := discovery.NewDiscoveryClientForConfig(w.config)
	if err != nil {
		return err
	}
	client.UseLegacyDiscovery = true
	return discovered(client)
}

func discovered(client discovery.DiscoveryInterface) error {
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(version.GitVersion, "v1.") {
		return fmt.Errorf("the version is %q", version.GitVersion)
	}
	groups, resources, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if len(groups) < 10 || len(resources) < 15 {
		return fmt.Errorf("only %d groups with %d versions", len(groups), len(resources))
	}
	for _, list := range resources {
		for _, resource := range list.APIResources {
			if list.GroupVersion == "apps/v1" && resource.Name == "deployments/scale" {
				return equal("the kind of deployments/scale", resource.Kind, "Scale")
			}
		}
	}
	return errors.New("there is no deployments/scale in apps/v1")
}

func discoveryRESTMapper(_ context.Context, w *world) error {
	client, err := discovery.NewDiscoveryClientForConfig(w.config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	if err != nil {
		return err
	}
	if err := equal("the resource of Deployment", mapping.Resource.Resource, "deployments"); err != nil {
		return err
	}
	kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: "po"})
	if err == nil {
		return fmt.Errorf("a short name was taken for %v without an expander", kind)
	}
	kind, err = restmapper.NewShortcutExpander(mapper, client, nil).KindFor(schema.GroupVersionResource{Resource: "po"})
	if err != nil {
		return err
	}
	return equal("the kind of po", kind.Kind, "Pod")
}

func discoveryOpenAPI(_ context.Context, w *world) error {
	client, err := discovery.NewDiscoveryClientForConfig(w.config)
	if err != nil {
		return err
	}
	if _, err := client.OpenAPISchema(); err != nil {
		return fmt.Errorf("version 2: %w", err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return fmt.Errorf("version 3: %w", err)
	}
	apps, ok := paths["apis/apps/v1"]
	if !ok {
		return errors.New("there is no apis/apps/v1 in version 3")
	}
	text, err := apps.Schema("application/json")
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "io.k8s.api.apps.v1.Deployment") {
		return errors.New("version 3 does not describe Deployments")
	}
	return nil
}
