package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

func template(w *world, image string) *appsv1.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "applied"}
	return appsv1.Deployment("applied", w.namespace).WithSpec(appsv1.DeploymentSpec().
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1.PodTemplateSpec().WithLabels(labels).WithSpec(corev1.PodSpec().
			WithContainers(corev1.Container().WithName("web").WithImage(image)))))
}

// applyConfigurations applies the same template as two managers, then another one as one of them, and extracts its fields.
func applyConfigurations(ctx context.Context, w *world) error {
	client := w.kube.AppsV1().Deployments(w.namespace)
	for _, manager := range []string{"one", "two"} {
		if _, err := client.Apply(ctx, template(w, "nginx:1"), metav1.ApplyOptions{FieldManager: manager}); err != nil {
			return fmt.Errorf("%s: %w", manager, err)
		}
	}
	_, err := client.Apply(ctx, template(w, "nginx:2"), metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("another image: %w", err)
	}
	forced, err := client.Apply(ctx, template(w, "nginx:2"), metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	owned, err := appsv1.ExtractDeployment(forced, "two")
	if err != nil {
		return err
	}
	if len(owned.Spec.Template.Spec.NodeSelector) > 0 {
		return fmt.Errorf("the manager owns a node selector that it never named: %v", owned.Spec.Template.Spec.NodeSelector)
	}
	return equal("the image that is owned", *owned.Spec.Template.Spec.Containers[0].Image, "nginx:2")
}
