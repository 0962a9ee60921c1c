package main

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// rounds is the number of rounds. Each uses a new account with a new role and a new binding immediately.
const rounds = 5

// typedRBAC does the same as Karmada when a cluster joins: it creates an account with all rights, a ClusterRole and a
// ClusterRoleBinding in protobuf, and uses the token immediately. Then it continues as the account.
func typedRBAC(ctx context.Context, w *world) error {
	kube, err := with(w, "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json")
	if err != nil {
		return err
	}
	for round := range rounds {
		if err := joined(ctx, w, kube, fmt.Sprintf("%s:%d", w.namespace, round)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

func joined(ctx context.Context, w *world, kube kubernetes.Interface, name string) (err error) {
	account := fmt.Sprintf("joined-%c", name[len(name)-1])
	made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	if _, err := kube.CoreV1().ServiceAccounts(w.namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	roles, bindings := kube.RbacV1().ClusterRoles(), kube.RbacV1().ClusterRoleBindings()
	if _, err := roles.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a role that is not there: %w", err)
	}
	rules := []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"*"}},
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"check": "rbac"}}, Rules: rules,
	}
	role, err = roles.Create(ctx, role, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("role: %w", err)
	}
	defer func() { err = gone(err, roles.Delete(ctx, name, metav1.DeleteOptions{})) }()
	if err := equal("the role", fmt.Sprint(role.Name, role.Labels, role.Rules), fmt.Sprint(name, map[string]string{"check": "rbac"}, rules)); err != nil {
		return err
	}
	events, err := bindings.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer events.Stop()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: w.namespace}},
	}
	// Create this before the binding, so that only the binding precedes the first use.
	token, err := kube.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	if binding, err = bindings.Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding: %w", err)
	}
	defer func() { err = gone(err, bindings.Delete(ctx, name, metav1.DeleteOptions{})) }()
	if err := equal("the subject", binding.Subjects[0].Namespace, w.namespace); err != nil {
		return err
	}
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = token.Status.Token
	own, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := own.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("first use: %w", err)
	}
	if _, err := own.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("first use in a namespace: %w", err)
	}
	event := <-events.ResultChan()
	seen, ok := event.Object.(*rbacv1.ClusterRoleBinding)
	if !ok || event.Type != watch.Added || seen.RoleRef.Name != name {
		return fmt.Errorf("the watch tells of %s %T", event.Type, event.Object)
	}
	role.Labels["check"] = "again"
	if role, err = roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	list, err := roles.List(ctx, metav1.ListOptions{LabelSelector: "check=again"})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	return equal("what is selected", fmt.Sprint(len(list.Items), list.Items[0].Name), fmt.Sprint(1, name))
}

// gone is the first error.
func gone(err, deleted error) error {
	if err == nil && deleted != nil {
		return fmt.Errorf("delete: %w", deleted)
	}
	return err
}
