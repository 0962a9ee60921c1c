package main

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaderElection elects a second candidate after the first one has released the Lease.
func leaderElection(ctx context.Context, w *world) error {
	for _, candidate := range []string{"first", "second"} {
		if err := lead(ctx, w, candidate); err != nil {
			return err
		}
	}
	lease, err := w.kube.CoordinationV1().Leases(w.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return equal("the number of transitions", *lease.Spec.LeaseTransitions, 1)
}

func lead(ctx context.Context, w *world, candidate string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	led := false
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: w.namespace},
			Client:     w.kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: candidate},
		},
		LeaseDuration:   5 * time.Second,
		RenewDeadline:   3 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led = true; cancel() },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if !led {
		return errors.New(candidate + " did not come to lead")
	}
	return nil
}
