use bytes::Bytes;
use serde_json::json;

use super::super::tests::{answer, api};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_source_of_changes_begins_with_the_current_version() {
    let (mut server, api, _tasks) = api();
    let mut source = Source::of_changes(&api, "/x", Selection::default().metadata());
    let serve = async {
        let received = server.next_request().await;
        assert_eq!(received.path(), "/x?limit=1");
        let list = json!({"metadata": {"resourceVersion": "5", "continue": "more"}, "items": [{"metadata": {}}]});
        answer(received, 200, &list);
        let received = server.next_request().await;
        let from = "/x?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=";
        assert!(received.path().starts_with(from), "{}", received.path());
        let mut stream = received.begin();
        stream.send_data("{}\n".into(), false).unwrap();
        stream
    };
    let listen = async {
        assert!(matches!(source.next().await, Read::Listed(version) if version == "5"));
        assert!(!source.is_watching());
        assert!(matches!(source.next().await, Read::Frame(frame) if frame == "{}\n"));
        assert!(source.is_watching());
        source
    };
    let (mut source, mut stream) = tokio::join!(listen, serve);
    stream.send_data(Bytes::new(), true).unwrap();
    let received = tokio::select! {
        received = server.next_request() => received,
        read = source.next() => panic!("{read:?}"),
    };
    assert!(received.path().contains("resourceVersion=5&"), "{}", received.path());
    assert!(!source.is_watching());
}
