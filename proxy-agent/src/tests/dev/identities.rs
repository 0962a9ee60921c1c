//! Who a caller is: certificates, tokens of service accounts, and impersonation.

use serde_json::json;

use crate::tests::agent::ClientRequest;
use crate::tests::dev::Dev;

fn who_am_i() -> ClientRequest {
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    ClientRequest::post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
}

#[tokio::test(start_paused = true)]
async fn a_caller_sees_its_own_name_and_groups() {
    let dev = Dev::new().await;
    let user = dev.send(who_am_i()).await.expect(201).json()["status"]["userInfo"].clone();
    assert_eq!(user["username"], "admin");
    let groups = user["groups"].as_array().unwrap();
    assert!(groups.contains(&"system:masters".into()) && groups.contains(&"system:authenticated".into()), "{user}");
    assert!(!user.to_string().contains("vc:"), "{user}");
}

/// The token is one of the host, but its service account belongs to one cluster.
#[tokio::test(start_paused = true)]
async fn a_service_account_is_of_one_cluster() {
    let dev = Dev::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot"}});
    dev.send(ClientRequest::post(accounts, &account)).await.expect(201);
    let request = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
    let response = dev.send(ClientRequest::post(&format!("{accounts}/robot/token"), &request)).await.expect(201).json();
    let bearer = format!("Bearer {}", response["status"]["token"].as_str().unwrap());
    let robot = |request: ClientRequest| request.by_nobody().header("authorization", &bearer);
    let user = dev.send(robot(who_am_i())).await.expect(201).json()["status"]["userInfo"].clone();
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert!(user["groups"].as_array().unwrap().contains(&"system:serviceaccounts:default".into()), "{user}");
    dev.send(robot(ClientRequest::get("/api/v1/nodes"))).await.expect(403);
    dev.send(robot(ClientRequest::get("/api/v1/nodes")).of("hz")).await.expect(401);

    let binding = json!({
        "kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    let shown = dev.send(ClientRequest::post(bindings, &binding)).await.expect(201).json();
    assert_eq!(shown["subjects"], binding["subjects"]);
    dev.send(robot(ClientRequest::get("/api/v1/namespaces/default/configmaps"))).await.expect(200);
    dev.send(robot(ClientRequest::get("/api/v1/namespaces/kube-system/configmaps"))).await.expect(403);
}

#[tokio::test(start_paused = true)]
async fn impersonation_needs_the_right_and_stays_in_the_cluster() {
    let dev = Dev::new().await;
    let as_jane = |request: ClientRequest| request.header("impersonate-user", "jane");
    let user = dev.send(as_jane(who_am_i())).await.expect(201).json()["status"]["userInfo"].clone();
    assert_eq!(user["username"], "jane");
    dev.send(as_jane(ClientRequest::get("/api/v1/nodes"))).await.expect(403);
    let (code, _, message) = dev.send(as_jane(who_am_i()).by("eve")).await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("User \"eve\" cannot impersonate"), "{message}");
    // The host's own users and groups are other ones.
    let user = dev.send(who_am_i().header("impersonate-user", "operator")).await.expect(201).json();
    assert_eq!(user["status"]["userInfo"]["username"], "operator");
    let masters = ClientRequest::get("/api/v1/secrets")
        .header("impersonate-user", "x")
        .header("impersonate-group", "system:masters");
    dev.send(masters).await.expect(200);
}
