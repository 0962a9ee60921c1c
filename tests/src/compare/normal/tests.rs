use super::{credential, is_own_deadline, line, readable};

fn masked(text: &str) -> String {
    line(text, false)
}

#[test]
fn uids_and_times() {
    assert_eq!(masked("uid: 3f2b8c1e-0a1b-4c2d-8e3f-0123456789ab"), "uid: UID");
    assert_eq!(masked("kwok://3f2b8c1e-0a1b-4c2d-8e3f-0123456789ab-web"), "kwok://UID-web");
    assert_eq!(masked("created: \"2026-11-21T03:56:26Z\""), "created: \"TIME\"");
    assert_eq!(masked("2026-11-21T03:56:26.123456Z stdout"), "TIME stdout");
    assert_eq!(masked("2026-11-21T03:56:26+01:00,"), "TIME,");
    assert_eq!(masked("Start Time:  Sat, 21 Nov 2026 03:56:26 +0000"), "Start Time:  TIME");
    assert_eq!(masked("Created on:   2026-11-21 03:56:26 +0000 UTC"), "Created on:  TIME");
    assert_eq!(masked("E1121 03:56:26.123456   12345 memcache.go:265]"), "LOG memcache.go:265]");
}

#[test]
fn log_lines_about_the_timeout_of_the_client() {
    let log =
        |err: &str| format!(r#"E1121 03:56:26.123456 12345 reflector.go:227] "Failed to watch" err="{err}" type="x""#);
    assert!(is_own_deadline(&log("context deadline exceeded")));
    assert!(!is_own_deadline(&log("the server could not find the requested resource")));
    assert!(!is_own_deadline("error: context deadline exceeded"));
}

#[test]
fn numbers() {
    assert_eq!(masked("resourceVersion: \"123\""), "resourceVersion: \"VERSION\"");
    assert_eq!(
        masked("\"resourceVersion\":\"123\",\"generation\":2"),
        "\"resourceVersion\":\"VERSION\",\"generation\":2"
    );
    assert_eq!(masked(r#"{\"resourceVersion\":\"9\"}"#), r#"{\"resourceVersion\":\"VERSION\"}"#);
    assert_eq!(masked("?watch=1&resourceVersion=77"), "?watch=1&resourceVersion=VERSION");
    assert_eq!(masked("Resource Version:  940"), "Resource Version:  VERSION");
    assert_eq!(
        masked("Too large resource version: 999, current: 12"),
        "Too large resource version: VERSION, current: VERSION"
    );
    assert_eq!(masked("version: 5, current: 12"), "version: 5, current: 12");
    assert_eq!(masked("192.0.2.11:10250, 10.244.0.0/22."), "ADDRESS:10250, ADDRESS/22.");
    assert_eq!(masked("http://127.0.0.1:45678/x"), "http://LOOPBACK:PORT/x");
    assert_eq!(masked("v1.36.2 1.2.3"), "v1.36.2 1.2.3");
    assert_eq!(masked("80:31234/TCP nodePort: 30000 8080"), "80:NODE-PORT/TCP nodePort: NODE-PORT 8080");
}

#[test]
fn suffixes_of_names() {
    assert_eq!(masked("pod/web-5d4f8b9c7-x2x9k"), "pod/web-HASH-RANDOM");
    assert_eq!(masked("pod-template-hash=5d4f8b9c7"), "pod-template-hash=HASH");
    assert_eq!(masked("\"controller-revision-hash\": \"78d4f9\""), "\"controller-revision-hash\": \"HASH\"");
    assert_eq!(
        masked("kube-system beijing-1 web-0 my-config some-thing"),
        "kube-system beijing-1 web-0 my-config some-thing"
    );
    assert_eq!(line("web-0 on beijing-2", true), "web-0 on NODE");
}

#[test]
fn ages_but_not_quantities() {
    assert_eq!(masked("web   1/1     Running   0          2m3s   a"), "web  1/1  Running  0  AGE  a");
    assert_eq!(masked("5s          Normal   Scheduled"), "AGE  Normal  Scheduled");
    assert_eq!(masked("3s (x2 over 2m)   Normal"), "AGE  Normal");
    assert_eq!(masked("<invalid>   Normal (x y)"), "AGE  Normal (x y)");
    assert_eq!(masked("    cpu:     100m"), "    cpu:  100m");
    assert_eq!(masked("    cpu: 100m"), "    cpu: 100m");
    assert_eq!(masked("cpu   100m (0%)   0 (0%)"), "cpu  100m (0%)  0 (0%)");
    assert_eq!(masked("Duration:  3s"), "Duration:  AGE");
    assert_eq!(masked("Limits:  10m  text"), "Limits:  10m  text");
    assert_eq!(masked("    \"10s\","), "    \"AGE\",");
    assert_eq!(masked("    \"memory\": \"10m\","), "    \"memory\": \"10m\",");
    assert_eq!(masked("s  5x  12  m5"), "s  5x  12  m5");
}

#[test]
fn credentials() {
    let certificate = "ca: |\n  -----BEGIN CERTIFICATE-----\n  MIIB\n  -----END CERTIFICATE-----\nrest";
    assert_eq!(credential::certificates(certificate), "ca: |\n  CERTIFICATE\nrest");
    assert_eq!(credential::certificates("-----BEGIN CERTIFICATE-----"), "-----BEGIN CERTIFICATE-----");
    assert_eq!(masked("token: eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJ.x-_y"), "token: TOKEN");
    assert_eq!(masked("token: ZXlKaGJHY2lPaUpTVXpJMU5pSXNJbXRwWkNJNkl1"), "token: TOKEN");
    assert_eq!(masked("ca.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURQ=="), "ca.crt: CERTIFICATE");
    assert_eq!(masked("\"continue\": \"v1.any thing\","), "\"continue\": \"TOKEN\",");
    assert_eq!(masked("X509SHA256=0123456789abcdef0123456789abcdef"), "X509SHA256=DIGEST");
    assert_eq!(masked("web.18796f2a5c3b1d2e"), "web.DIGEST");
    assert_eq!(masked("decade facade"), "decade facade");
}

#[test]
fn json_is_formatted_on_several_lines() {
    assert_eq!(readable("{\"b\":1,\"a\":[]}\n"), "{\n  \"a\": [],\n  \"b\": 1\n}");
    assert_eq!(readable("{\"a\":1}\n{\"b\":2}\n"), "{\n  \"a\": 1\n}\n{\n  \"b\": 2\n}");
    assert_eq!(readable("200 OK\n{\"a\":1}"), "200 OK\n{\n  \"a\": 1\n}");
    for text in ["a {b} c", "a {\"b\":1}\n", "{b}", "{\"a\":1} and more"] {
        assert_eq!(readable(text), text);
    }
}

#[test]
fn bookmarks_may_come_at_any_time() {
    let event =
        |kind: &str, metadata: &str| format!("{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{metadata}}}}}\n");
    let added = event("ADDED", "{}");
    let end = event("BOOKMARK", "{\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}");
    let bookmark = event("BOOKMARK", "{\"resourceVersion\":\"5\"}");
    assert_eq!(readable(&format!("{added}{bookmark}{end}{bookmark}")), readable(&format!("{added}{end}")));
    assert!(readable(&end).contains("initial-events-end"));
}

#[test]
fn indentation_is_kept() {
    assert_eq!(masked("    a     b  c   "), "    a  b  c");
}
