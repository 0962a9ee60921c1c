//! Virtual clusters whose namespaces or memory change.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_namespace_that_changes_its_owner_ends_the_watches_of_both() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x"), object("n2", "b", 4, "x")]).await;
    let mut bodies = Vec::new();
    for cluster in [1, 2, 3] {
        bodies.push(site.watch(cluster, "resourceVersion=10").await);
    }
    site.owners.set("n1", Place::One(ClusterId(2)));
    for body in &mut bodies[..2] {
        let (event, status) = next(body).await.unwrap();
        assert_eq!((event.as_str(), &status["code"]), ("ERROR", &json!(410)));
        assert_eq!(next(body).await, None);
    }
    assert!(is_silent(&mut bodies[2]), "another cluster");
    assert!(site.is_expired(1, 10).await && site.is_expired(2, 10).await, "while the feed lists");
    let name = |namespace: &str| if namespace == "n1" { "a" } else { "b" };
    site.answer_lists(|namespace| vec![object(namespace, name(namespace), 4, "x")]).await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(31)).await);
    let mut body = site.watch(2, &format!("{INITIAL}=30")).await;
    for (namespace, name) in [("n1", "a"), ("n2", "b")] {
        assert_eq!(next(&mut body).await.unwrap().1, with_kind(object(namespace, name, 4, "x")));
    }
    let (event, _) = next(&mut body).await.unwrap();
    assert_eq!(event, "BOOKMARK");
    let mut former = site.watch(1, &format!("{INITIAL}=30")).await;
    assert_eq!(next(&mut former).await.unwrap().0, "BOOKMARK", "it has no object any more");
    assert!(site.is_expired(2, 19).await);
    // The client has listed at the host meanwhile, so it need not list again.
    let at_the_host = begin(&site.feeds, &collection(), query(2, "resourceVersion=25"), always()).await;
    assert_eq!(at_the_host.unwrap_err(), Bypass::BeforeWindow);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_listed_while_events_arrive() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x"), object("n1", "b", 4, "x")]).await;
    let mut other = site.watch(3, "resourceVersion=10").await;
    site.owners.set("n1", Place::One(ClusterId(2)));
    let received = site.server.next_request().await;
    assert!(received.path().contains(NOBODYS), "{}", received.path());
    assert!(site.is_expired(2, 25).await, "no version after the change is known");
    received.answer_with(200, r#"{"metadata":{"resourceVersion":"11"},"items":[]}"#);
    let first = site.server.next_request().await;
    for (version, is_expired) in [(10, true), (11, false)] {
        assert_eq!(site.is_expired(2, version).await, is_expired, "{version} during the list");
    }
    send(&mut stream, "ADDED", object("n3", "c", 12, "x"));
    send(&mut stream, "MODIFIED", object("n1", "a", 13, "x"));
    send(&mut stream, "DELETED", object("n1", "b", 14, "x"));
    assert_eq!(next(&mut other).await.unwrap().1["metadata"]["name"], "c");
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(14)).await);
    let mut next_list = Some(first);
    for namespace in ["n1", "n2"] {
        let received = match next_list.take() {
            Some(first) => first,
            None => site.server.next_request().await,
        };
        assert!(received.path().contains(&format!("/{namespace}/")), "{}", received.path());
        let items =
            if namespace == "n1" { vec![object("n1", "a", 3, "x"), object("n1", "b", 4, "x")] } else { Vec::new() };
        received.answer_with(200, json!({"metadata": {"resourceVersion": "11"}, "items": items}).to_string());
    }
    assert!(timeout(Duration::from_secs(1), site.server.next_request()).await.is_err(), "the lists are complete");
    let mut body = site.watch(2, &format!("{INITIAL}=11")).await;
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object("n1", "a", 13, "x")));
    assert_eq!(next(&mut body).await.unwrap().0, "BOOKMARK", "b was deleted after the list");
}

/// The host is asked only for versions that it has told itself.
#[tokio::test(start_paused = true)]
async fn a_version_of_a_client_does_not_refresh_the_feed() {
    let (mut site, _stream) = Site::with(&[]).await;
    let future = format!("{INITIAL}={}", u64::MAX);
    let refused = begin(&site.feeds, &collection(), query(1, &future), always()).await;
    assert_eq!(refused.unwrap_err(), Bypass::Timeout);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!site.server.has_request());
}

/// What does not fit is listed again after ten minutes, and not at once, also if it is closed within its list.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_fit_is_not_listed_in_a_loop() {
    let large = |namespace: &str, name: &str, version| {
        let mut object = object(namespace, name, version, "x");
        object["data"] = json!({"text": "x".repeat(110_000)});
        object
    };
    let others: Vec<_> = (1..=8).chain([10]).map(|number| large(&format!("n{number}"), "a", number)).collect();
    let (mut site, _stream) = Site::with_memory(1 << 20).filled(&others).await;
    site.owners.set("more", Place::One(ClusterId(20)));
    site.owners.set("n10", Place::One(ClusterId(20)));
    let newest = site.server.next_request().await;
    newest.answer_with(200, r#"{"metadata":{"resourceVersion":"10"},"items":[]}"#);
    let mut lists = Vec::new();
    while let Ok(received) = timeout(Duration::from_secs(5 * 60), site.server.next_request()).await {
        let namespace = received.path().split('/').nth(4).unwrap_or_default().to_owned();
        if received.path().contains("watch=") {
            continue;
        }
        let items = if namespace == "n10" { vec![large("n10", "a", 10), large("n10", "b", 9)] } else { Vec::new() };
        lists.push(namespace);
        assert!(lists.len() < 20, "{lists:?}");
        // The hub frees memory between two lists.
        tokio::time::sleep(Duration::from_secs(2)).await;
        received.answer_with(200, json!({"metadata": {"resourceVersion": "10"}, "items": items}).to_string());
    }
    assert_eq!(lists, ["more", "n10", "n20"]);
}

/// A cluster is removed, and added again: it gets the objects of all its namespaces.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_back_has_all_its_objects() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x"), object("more", "b", 4, "x")]).await;
    let list_all = async |site: &mut Site| {
        let name = |namespace: &str| if namespace == "more" { "b" } else { "a" };
        site.answer_lists(|namespace| vec![object(namespace, name(namespace), 4, "x")]).await;
    };
    site.owners.set("more", Place::One(ClusterId(1)));
    list_all(&mut site).await;
    for namespace in ["n1", "more"] {
        site.owners.set(namespace, Place::Nobody);
    }
    list_all(&mut site).await;
    for namespace in ["n1", "more"] {
        site.owners.set(namespace, Place::One(ClusterId(1)));
    }
    list_all(&mut site).await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(31)).await);
    let mut body = site.watch(1, &format!("{INITIAL}=30")).await;
    for (namespace, name) in [("more", "b"), ("n1", "a")] {
        assert_eq!(next(&mut body).await.unwrap().1, with_kind(object(namespace, name, 4, "x")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_joins_brings_its_objects() {
    let (mut site, mut stream) = Site::with(&[object("kube-system", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    site.owners.set("empty", Place::One(ClusterId(1)));
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "20"}}));
    assert_eq!(next(&mut body).await.unwrap().0, "BOOKMARK", "a namespace without objects changes nothing");
    site.owners.set("kube-system", Place::One(ClusterId(1)));
    assert_eq!(next(&mut body).await.unwrap().0, "ERROR");
    let is_there = |namespace: &str| namespace == "kube-system";
    let objects = |namespace: &str| is_there(namespace).then(|| object(namespace, "a", 3, "x")).into_iter().collect();
    site.answer_lists(objects).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The list is newer than the last event, so the driver asks for a bookmark.
    let feeds = Arc::clone(&site.feeds);
    let begun =
        tokio::spawn(async move { begin(&feeds, &collection(), query(1, &format!("{INITIAL}=0")), always()).await });
    let brief = site.server.next_request().await;
    assert!(brief.path().contains("&timeoutSeconds=3"), "{}", brief.path());
    let mut brief = brief.begin();
    send(&mut brief, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    let Ok(Begun::Watch(mut body)) = begun.await.unwrap() else { panic!("no watch") };
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object("kube-system", "a", 3, "x")));
}

/// The feed of the namespaces can be later than that of their objects.
#[tokio::test(start_paused = true)]
async fn an_object_that_comes_before_its_namespace_is_not_lost() {
    let (mut site, mut stream) = Site::with(&[]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "ADDED", object(UNKNOWN, "a", 11, "x"));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(11)).await);
    assert!(is_silent(&mut body));
    site.owners.set(UNKNOWN, Place::One(ClusterId(1)));
    assert_eq!(next(&mut body).await.unwrap().0, "ERROR", "clients list again");
    let objects = |namespace: &str| (namespace == UNKNOWN).then(|| object(UNKNOWN, "a", 11, "x")).into_iter().collect();
    site.answer_lists(objects).await;
    send(&mut stream, "BOOKMARK", json!({"metadata": {"resourceVersion": "31"}}));
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(31)).await);
    let mut body = site.watch(1, &format!("{INITIAL}=30")).await;
    assert_eq!(next(&mut body).await.unwrap().1, with_kind(object(UNKNOWN, "a", 11, "x")));
}
