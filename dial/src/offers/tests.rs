use std::sync::Arc;

use ::tunnel::Budget;
use protocol::registration::Mode;
use protocol::{Refusal, RefusalReason};

use super::*;

/// Follows the offers of an agent that offers `one` and `two`, and answers each of these lines. Returns the verdicts that
/// the agent reports.
async fn reported(answers: &[&str]) -> Vec<Verdict> {
    let offers = ["one", "two"].map(|name| Offer::new(name.parse().unwrap(), Mode::Virtual));
    let current = watch::Sender::new(Arc::from(offers));
    let report = Verdicts::default();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (client, server) =
        tokio::join!(::tunnel::settings::client().handshake(near), ::tunnel::settings::server().handshake(far));
    let ((mut requests, connection), mut server) = (client.unwrap(), server.unwrap());
    let mut seen = report.subscribe();
    let agent = async {
        let (request, respond) = server.accept().await.unwrap().unwrap();
        let inbound = Inbound::new(request.into_body(), &Budget::new(1 << 20));
        let told = tell(current.subscribe(), inbound, respond, &report, CancellationToken::new());
        tokio::join!(told, async { while server.accept().await.is_some() {} })
    };
    let proxy_server = async {
        let (response, mut outbound) = requests.send_request(http::Request::new(()), false).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert!(body.data().await.unwrap().unwrap().ends_with(b"\n"), "the offers are a line");
        let mut verdicts = Vec::new();
        for answer in answers {
            send_bytes(&mut outbound, Bytes::from(format!("{answer}\n")), false).await.unwrap();
            seen.changed().await.unwrap();
            verdicts.push(seen.borrow_and_update().clone());
        }
        verdicts
    };
    tokio::select! {
        verdicts = proxy_server => verdicts,
        _ = agent => unreachable!("the stream does not end"),
        _ = connection => unreachable!("the tunnel does not end"),
    }
}

#[tokio::test]
async fn refused_clusters_are_reported_by_name() {
    let refused = r#"{"refusal":{"reason":"Conflict","message":"clusters two, three: taken"},
        "refused":[{"clusters":["two","three"],"refusal":{"reason":"Conflict","message":"taken"}},
        {"clusters":["four"],"refusal":{"reason":"NotGranted","message":"no"}}]}"#;
    let withdrawn = r#"{"refusal":{"reason":"NotGranted","message":"cluster four: no"},
        "refused":[{"clusters":["four"],"refusal":{"reason":"NotGranted","message":"no"}}]}"#;
    let answers = [refused, withdrawn].map(|answer| answer.replace('\n', ""));
    let verdicts = reported(&[&answers[0], "{}", &answers[1]]).await;
    let taken = Refusal::new(RefusalReason::Conflict, "taken");
    // This agent does not offer the other two.
    assert_eq!(verdicts[0].refused, [RefusedClusters { clusters: vec!["two".parse().unwrap()], refusal: taken }]);
    let summary = Refusal::new(RefusalReason::Conflict, "cluster two: taken");
    assert_eq!(verdicts[0].refusal, Some(summary));
    // Nothing that this agent offers is refused.
    assert_eq!(verdicts[1..], [Verdict::default(), Verdict::default()]);
}

#[tokio::test]
async fn a_proxy_server_of_1_0_refuses_all_clusters_together() {
    let verdicts =
        reported(&[r#"{"refusal":{"reason":"NotGranted","message":"agent site-a may not serve two"}}"#]).await;
    let refusal = Some(Refusal::new(RefusalReason::NotGranted, "agent site-a may not serve two"));
    assert_eq!(verdicts, [Verdict { refusal, ..Verdict::default() }]);
}
