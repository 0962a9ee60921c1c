use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::*;

crate::label_set! {
    struct Fish {
        reef: Arc<str>,
        shy: bool,
    }
}

fn registry() -> Registry {
    Registry::new(Build { component: "proxy-agent", version: "1.2.3" })
}

fn fish(reef: &str, shy: bool) -> Fish {
    let reef = reef.into();
    Fish { reef, shy }
}

fn lines(registry: &Registry, name: &str) -> Vec<String> {
    let text = registry.encode();
    let ours = text.lines().filter(|line| line.starts_with(name));
    ours.map(str::to_owned).collect()
}

#[test]
fn a_registry_has_build_info() {
    let registry = registry();
    assert_eq!(
        lines(&registry, "atoll_build_info"),
        ["atoll_build_info{component=\"proxy-agent\",version=\"1.2.3\"} 1"]
    );
    assert_eq!(lines(&registry, "process_resident_memory_bytes").len(), 1);
}

#[test]
fn a_registry_describes_metrics_without_series() {
    let registry = registry();
    registry.counters::<Fish>("atoll_fish_total", "Fish.");
    registry.observe("atoll_tide", "Tide.", || 0);
    let ours = registry.descriptions().into_iter().filter(|one| one.name.starts_with("atoll_"));
    let ours: Vec<_> = ours.map(|Description { name, labels, help }| format!("{name} {labels:?} {help}")).collect();
    assert_eq!(
        ours,
        [
            r#"atoll_build_info ["component", "version"] Always 1; what is running is in the labels."#,
            r#"atoll_fish_total ["reef", "shy"] Fish."#,
            "atoll_tide [] Tide.",
        ]
    );
}

#[test]
fn counters_gauges_and_histograms_are_exported() {
    let registry = registry();
    let counter = registry.counters::<()>("atoll_seen_total", "Seen.").with(&());
    counter.inc();
    counter.add(2);
    assert_eq!(lines(&registry, "atoll_seen_total"), ["atoll_seen_total 3"]);

    let gauge = registry.gauges::<()>("atoll_open", "Open.").with(&());
    gauge.set(5);
    let guard = gauge.enter();
    assert_eq!(lines(&registry, "atoll_open"), ["atoll_open 6"]);
    drop(guard);
    assert_eq!(gauge.get(), 5);

    let histogram = registry.histogram("atoll_wait_seconds", "Wait.", &[0.1, 1.0]);
    histogram.observe_duration(Duration::from_millis(500));
    histogram.observe(7.0);
    assert_eq!(
        lines(&registry, "atoll_wait_seconds"),
        [
            "atoll_wait_seconds_bucket{le=\"0.1\"} 0",
            "atoll_wait_seconds_bucket{le=\"1\"} 1",
            "atoll_wait_seconds_bucket{le=\"+Inf\"} 2",
            "atoll_wait_seconds_sum 7.5",
            "atoll_wait_seconds_count 2",
        ]
    );

    let tide = Arc::new(AtomicI64::new(1));
    let read = tide.clone();
    registry.observe("atoll_tide", "Tide.", move || read.load(Ordering::Relaxed));
    tide.store(9, Ordering::Relaxed);
    assert_eq!(lines(&registry, "atoll_tide"), ["atoll_tide 9"]);
}

#[test]
fn a_series_is_found_by_its_labels_and_can_be_removed() {
    let registry = registry();
    let family = registry.counters::<Fish>("atoll_fish_total", "Fish.");
    assert!(lines(&registry, "atoll_fish").is_empty());
    family.with(&fish("a\"b\n", true)).inc();
    family.with(&fish("a\"b\n", true)).inc();
    family.with(&fish("c", false)).inc();
    assert_eq!(
        lines(&registry, "atoll_fish"),
        ["atoll_fish_total{reef=\"a\\\"b\\n\",shy=\"true\"} 2", "atoll_fish_total{reef=\"c\",shy=\"false\"} 1",]
    );
    family.remove(&fish("c", false));
    family.remove(&fish("never", false));
    assert_eq!(lines(&registry, "atoll_fish").len(), 1);
}

#[test]
fn a_family_is_bounded_and_its_sum_is_correct() {
    let registry = registry();
    let family = registry.histograms::<Fish>("atoll_depth_metres", "Depth.", &[1.0]);
    for n in 0..1_500 {
        family.with(&fish(&n.to_string(), true)).observe(1.0);
    }
    let counts = lines(&registry, "atoll_depth_metres_count");
    assert_eq!(counts.len(), 1_001);
    let overflow = "atoll_depth_metres_count{reef=\"overflow\",shy=\"overflow\"} 500";
    assert!(counts.iter().any(|line| line == overflow));

    family.remove(&fish("0", true));
    family.with(&fish("new", true)).observe(1.0);
    assert_eq!(lines(&registry, "atoll_depth_metres_count").len(), 1_001);
}

#[test]
#[should_panic(expected = "each registered once")]
fn a_name_is_used_once() {
    let registry = registry();
    registry.counters::<()>("atoll_seen_total", "Seen.").with(&());
    registry.gauges::<()>("atoll_seen_total", "Seen again.").with(&());
}

#[test]
fn observed_series_disappear_with_their_value() {
    let registry = registry();
    let seen = Arc::new(AtomicI64::new(2));
    let read = Arc::clone(&seen);
    registry.observe_each::<Fish>("atoll_school", "School.", move || {
        let count = read.load(Ordering::Relaxed);
        (0..count).map(|number| (fish(&format!("reef-{number}"), true), number)).collect()
    });
    let line = |number| format!("atoll_school{{reef=\"reef-{number}\",shy=\"true\"}} {number}");
    assert_eq!(lines(&registry, "atoll_school"), [line(0), line(1)]);
    seen.store(1, Ordering::Relaxed);
    assert_eq!(lines(&registry, "atoll_school"), [line(0)]);
    registry.observe_counts::<Fish>("atoll_caught_total", "Caught.", move || {
        vec![(fish("reef", false), seen.fetch_add(1, Ordering::Relaxed).unsigned_abs())]
    });
    for count in 1..3 {
        let line = format!("atoll_caught_total{{reef=\"reef\",shy=\"false\"}} {count}");
        assert_eq!(lines(&registry, "atoll_caught_total"), [line]);
    }
    assert!(registry.encode().contains("# TYPE atoll_caught_total counter\n"));
    assert!(registry.descriptions().iter().any(|one| one.name == "atoll_school" && one.labels == ["reef", "shy"]));
}
