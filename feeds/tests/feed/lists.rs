//! Lists of any version.

use feeds::ListQuery;

use super::*;

/// The list of a virtual cluster, if the feed answers it.
async fn list(site: &Site, cluster: u32, query: &str) -> Option<Value> {
    let uri = format!("{PATH}?resourceVersion=0&{query}").parse().unwrap();
    let query = ListQuery::read(&Method::GET, &uri, &HeaderMap::new(), ClusterId(cluster)).unwrap();
    let mut body = site.feeds.synced(&collection())?.list(query)?;
    let mut text = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    Some(serde_json::from_slice(&text).unwrap())
}

fn config_maps(version: &str, items: &[Value]) -> Value {
    json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items})
}

#[tokio::test(start_paused = true)]
async fn a_list_has_the_objects_of_its_cluster() {
    let objects = [object("n1", "a", 3, "x"), object("n2", "a", 4, "x"), object("n1", "b", 5, "y")];
    let (site, mut stream) = Site::with(&objects).await;
    let [a, _, b] = &objects;
    assert_eq!(list(&site, 1, "limit=1").await.unwrap(), config_maps("10", &[a.clone(), b.clone()]));
    assert_eq!(list(&site, 1, "labelSelector=app%3Dy").await.unwrap(), config_maps("10", std::slice::from_ref(b)));
    assert_eq!(list(&site, 3, "").await.unwrap(), config_maps("10", &[]));

    // The host begins an object of a built-in kind with its kind.
    let metadata = json!({"name": "a", "namespace": "n1", "resourceVersion": "11"});
    let changed = format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{metadata}}}"#);
    stream.send_data(format!("{{\"type\":\"MODIFIED\",\"object\":{changed}}}\n").into(), false).unwrap();
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(11)).await);
    let metadata = json!({"metadata": metadata});
    assert_eq!(list(&site, 1, "").await.unwrap(), config_maps("11", &[metadata, b.clone()]));
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_wait_for_a_feed() {
    let mut site = Site::new();
    assert!(list(&site, 1, "").await.is_none());
    for cluster in [1, 2] {
        let watch = begin(&site.feeds, &collection(), query(cluster, "resourceVersion=0"), always()).await;
        assert!(watch.is_err());
    }
    assert!(list(&site, 1, "").await.is_none(), "the feed lists");
    site.list(10, &[]).await;
    let _stream = site.watched_from(10).await;
    assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(10)).await);
    assert!(list(&site, 1, "").await.is_some());
    let redefined = Collection { membership: Membership::Everybody, ..collection() };
    assert!(site.feeds.synced(&redefined).is_none(), "the feed is of the former kind");
}

/// While the host cannot be reached, the state gets older.
#[tokio::test(start_paused = true)]
async fn a_list_of_a_silent_host_goes_to_the_host() {
    let (site, _stream) = Site::with(&[]).await;
    let _watch = site.watch(1, "resourceVersion=10").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(list(&site, 1, "").await.is_some());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(list(&site, 1, "").await.is_none());
}

/// A list is of one state, whatever happens while the client reads it.
#[tokio::test(start_paused = true)]
async fn a_list_does_not_change_while_it_is_read() {
    let mut large: Vec<Value> = (0..20).map(|number| object("n1", &format!("m{number:02}"), 3, "x")).collect();
    for object in &mut large {
        object["data"] = json!({"text": "x".repeat(20_000)});
    }
    let (site, mut stream) = Site::with(&large).await;
    let uri = format!("{PATH}?resourceVersion=0").parse().unwrap();
    let query = ListQuery::read(&Method::GET, &uri, &HeaderMap::new(), ClusterId(1)).unwrap();
    let mut body = site.feeds.synced(&collection()).unwrap().list(query).unwrap();
    let mut text = Vec::new();
    let mut version = 10;
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
        if version < 15 {
            version += 1;
            send(&mut stream, "DELETED", object("n1", &format!("m{version:02}"), version, "x"));
            assert!(site.feeds.feeds()[0].reached(ResourceVersion::new(version)).await);
        }
    }
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), config_maps("10", &large));
    assert_eq!(list(&site, 1, "").await.unwrap()["items"].as_array().unwrap().len(), 15);
}
