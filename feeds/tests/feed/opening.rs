//! Which feeds are open.

use feeds::{Feed, ListQuery};

use super::*;

/// Objects of everybody stay in memory, whichever cluster the hub stops to serve.
#[tokio::test(start_paused = true)]
async fn objects_of_everybody_that_do_not_fit_are_watched_at_the_host() {
    let mut site = Site::with_memory(1 << 20);
    let nodes = Collection { membership: Membership::Everybody, ..collection() };
    let watch =
        async |site: &Site, cluster| begin(&site.feeds, &nodes, query(cluster, "resourceVersion=0"), always()).await;
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    assert_eq!(watch(&site, 2).await.unwrap_err(), Bypass::Timeout);
    let large: Vec<_> = (0..3)
        .map(|number| {
            let mut object = with_kind(json!({"metadata": {"name": format!("n{number}"), "resourceVersion": "3"}}));
            object["data"] = "x".repeat(400 << 10).into();
            object
        })
        .collect();
    site.list(10, &large).await;
    let _stream = site.watched_from(10).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(site.feeds.feeds().iter().all(|feed| feed.has_ended()));
    assert_eq!(site.feeds.memory(), 0);
    for _ in 0..3 {
        assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Closed);
    }
    assert!(!site.server.has_request(), "it does not list again at once");
}

/// A custom kind can be deleted, and defined again with another scope.
#[tokio::test(start_paused = true)]
async fn a_kind_with_another_scope_gets_another_feed() {
    let (mut site, mut stream) = Site::with(&[object("n1", "a", 3, "x")]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    let everybody = Collection { membership: Membership::Everybody, ..collection() };
    let watch = async |site: &Site, text: &str| begin(&site.feeds, &everybody, query(1, text), always()).await;
    assert_eq!(watch(&site, "resourceVersion=0").await.unwrap_err(), Bypass::Timeout);
    assert_eq!(next(&mut body).await, None, "the watch of the former kind ends");
    let unscoped = with_kind(json!({"metadata": {"name": "b", "resourceVersion": "15"}}));
    site.list(20, std::slice::from_ref(&unscoped)).await;
    let _stream = site.watched_from(20).await;
    let begun = watch(&site, &format!("{INITIAL}=0")).await;
    let Ok(Begun::Watch(mut body)) = begun else { panic!("{begun:?}") };
    assert_eq!(next(&mut body).await.unwrap(), ("ADDED".to_owned(), unscoped));
    assert_eq!(next(&mut body).await.unwrap().0, "BOOKMARK");
    assert!(
        is_silent(&mut body) && stream.send_data(Bytes::new(), false).is_err(),
        "the former feed has left the host"
    );
}

/// The first watches of the new kind can begin before discovery knows its scope.
#[tokio::test(start_paused = true)]
async fn an_object_without_a_namespace_ends_the_feed_of_a_namespaced_kind() {
    let (site, mut stream) = Site::with(&[]).await;
    let mut body = site.watch(1, "resourceVersion=10").await;
    send(&mut stream, "ADDED", json!({"metadata": {"name": "b", "resourceVersion": "11"}}));
    assert_eq!(next(&mut body).await, None);
    assert!(site.feeds.feeds().iter().all(|feed| feed.has_ended()));
}

#[tokio::test(start_paused = true)]
async fn a_feed_opens_for_eight_open_watches_of_one_cluster() {
    let mut site = Site::new();
    let watch = async |site: &Site| {
        let begun = begin(&site.feeds, &collection(), query(1, "resourceVersion=0"), always()).await;
        begun.map(drop).unwrap_err()
    };
    let mut at_host = Vec::new();
    for _ in 0..8 {
        assert_eq!(watch(&site).await, Bypass::Few);
        at_host.push(site.feeds.hold_at_host(&collection()).unwrap());
    }
    // One of them ends.
    at_host.pop();
    assert_eq!(watch(&site).await, Bypass::Few);
    at_host.push(site.feeds.hold_at_host(&collection()).unwrap());
    assert_eq!(watch(&site).await, Bypass::Timeout, "the feed is open, and lists");
    site.list(10, &[]).await;
    let _stream = site.watched_from(10).await;
    site.watch(1, "resourceVersion=10").await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_opens_for_the_second_cluster_and_ends_without_watches() {
    let mut site = Site::new();
    let watch = async |site: &Site, cluster| {
        begin(&site.feeds, &collection(), query(cluster, "resourceVersion=0"), always()).await
    };
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    assert_eq!(watch(&site, 2).await.unwrap_err(), Bypass::Timeout, "the feed lists");
    site.list(10, &[]).await;
    let stream = site.watched_from(10).await;
    let body = site.watch(1, "resourceVersion=10").await;
    tokio::time::sleep(Duration::from_secs(250)).await;
    drop(site.watch(2, "resourceVersion=10").await);
    assert!(!site.server.has_request(), "the feed still has a watch");
    drop(body);
    tokio::time::sleep(Duration::from_secs(302)).await;
    // The feed has ended. A new one needs two clusters again.
    assert_eq!(watch(&site, 1).await.unwrap_err(), Bypass::Few);
    drop(stream);
}

/// After a restart of the agent, or of many clients.
#[tokio::test(start_paused = true)]
async fn watches_continue_from_versions_before_a_feed_opens() {
    let mut site = Site::new();
    let begin_watch = |cluster, text: &'static str| {
        let feeds = Arc::clone(&site.feeds);
        tokio::spawn(async move { begin(&feeds, &collection(), query(cluster, text), always()).await })
    };
    let _few = begin_watch(3, "resourceVersion=12").await.unwrap();
    let watches =
        [(1, "resourceVersion=9"), (2, "resourceVersion=7")].map(|(cluster, text)| begin_watch(cluster, text));
    // The first state is at least as new as the host is now.
    let received = site.server.next_request().await;
    assert_eq!(received.path(), format!("/api/v1/namespaces/{NOBODYS}/configmaps?limit=1"));
    received.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[]}"#);
    let received = site.server.next_request().await;
    assert_eq!(received.path(), format!("{PATH}?limit=500&resourceVersion=7&resourceVersionMatch=Exact"));
    let list = json!({"metadata": {"resourceVersion": "7"}, "items": [object("n1", "a", 3, "x")]});
    received.answer_with(200, list.to_string());
    let mut stream = site.watched_from(7).await;
    send(&mut stream, "ADDED", object("n2", "b", 8, "x"));
    send(&mut stream, "MODIFIED", object("n1", "a", 9, "y"));
    send(&mut stream, "ADDED", object("n1", "c", 10, "x"));
    let [nine, seven] = watches;
    let [mut nine, mut seven] = [nine.await, seven.await].map(|begun| match begun.unwrap() {
        Ok(Begun::Watch(body)) => body,
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&mut nine).await.unwrap().1["metadata"]["name"], "c");
    assert_eq!(next(&mut seven).await.unwrap().1["metadata"]["name"], "b");
    let uri: http::Uri = format!("{PATH}?resourceVersion=0").parse().unwrap();
    let list = |feed: &Feed| {
        feed.list(ListQuery::read(&Method::GET, &uri, &HeaderMap::new(), ClusterId(1)).unwrap()).is_some()
    };
    let feed = site.feeds.synced(&collection()).unwrap();
    assert!(!list(&feed), "the state is older than when the feed opened");
    // Nobody waits for the first state, but lists need it, and the resource can be quiet.
    let brief = site.server.next_request().await;
    assert!(brief.path().contains("resourceVersion=10&"), "{}", brief.path());
    assert!(brief.path().contains("&timeoutSeconds=3"), "{}", brief.path());
    let mut brief = brief.begin();
    send(&mut brief, "BOOKMARK", json!({"metadata": {"resourceVersion": "20"}}));
    assert!(feed.reached(ResourceVersion::new(20)).await && list(&feed));
}

/// The host has compacted the version, or a client has invented it.
#[tokio::test(start_paused = true)]
async fn a_feed_opens_without_the_version_that_a_watch_wants() {
    let mut site = Site::new();
    let watch = |cluster| {
        let feeds = Arc::clone(&site.feeds);
        tokio::spawn(async move { begin(&feeds, &collection(), query(cluster, "resourceVersion=7"), always()).await })
    };
    let _few = watch(1).await.unwrap();
    let watch = watch(2);
    site.server.next_request().await.answer_with(200, r#"{"metadata":{"resourceVersion":"20"},"items":[]}"#);
    let received = site.server.next_request().await;
    assert!(received.path().ends_with("&resourceVersion=7&resourceVersionMatch=Exact"), "{}", received.path());
    let expired = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410});
    received.answer_with(410, expired.to_string());
    site.list(20, &[]).await;
    let _stream = site.watched_from(20).await;
    assert_eq!(watch.await.unwrap().unwrap_err(), Bypass::BeforeWindow);
}
