use super::{Action, Script, Turn};
use crate::compare::Known;
use crate::paths;

fn error(text: &str) -> String {
    format!("{:#}", Script::parse("bad", text).unwrap_err())
}

#[test]
fn every_kind_of_step_is_parsed() {
    let text = "\
namespaces: edge shop
alone
# why
kubectl apply -f - -n edge <<END
# not a comment
kind: ConfigMap
END
  sort
  ignore-lines a b
wait: kubectl get pods
  shows Running
set: POD kubectl get pods -o name
file: note.txt <<TEXT
hello
TEXT
terminal: kubectl exec -it ${POD} -- sh
  expect ready
  type echo  x
  expect x
  hang-up
follow: kubectl logs -f web
  meanwhile kubectl delete pod web
  until line 3
forward: kubectl port-forward web :7
  send ping
request: POST /api/v1/namespaces <<END
{}
END
  header Content-Type: application/json
";
    let script = Script::parse("all", text).unwrap();
    assert_eq!(script.namespaces, ["edge", "shop"]);
    assert!(script.alone);
    let [apply, wait, set, file, terminal, follow, forward, request] = &script.steps[..] else {
        panic!("{:?}", script.steps)
    };
    assert_eq!((apply.line, apply.text.as_str()), (4, "kubectl apply -f - -n edge"));
    assert!(matches!(&apply.action, Action::Run { words, input, .. }
        if words == &["apply", "-f", "-", "-n", "edge"] && input == "# not a comment\nkind: ConfigMap\n"));
    assert!(apply.view.sort && apply.view.without == ["a b"]);
    assert!(matches!(&wait.action, Action::Wait { shows, .. } if shows == &["Running"]));
    assert!(matches!(&set.action, Action::Set { name, words } if name == "POD" && words[0] == "get"));
    assert!(matches!(&file.action, Action::File { name, text } if name == "note.txt" && text == "hello\n"));
    assert!(matches!(&terminal.action, Action::Terminal { turns, hang_up: true, .. }
        if turns[1] == Turn::Type("echo  x".into()) && turns.len() == 3));
    assert!(matches!(&follow.action, Action::Follow { until, meanwhile, .. }
        if until == "line 3" && meanwhile[0] == ["delete", "pod", "web"]));
    assert!(matches!(&forward.action, Action::Forward { send, .. } if send == "ping"));
    assert!(matches!(&request.action, Action::Request { method, body, headers, .. }
        if method == "POST" && body == "{}\n" && headers == &["Content-Type: application/json"]));
}

#[test]
fn errors_name_the_line() {
    assert!(error("kubectl get\nrm -rf /\n").contains("line 2 of the script bad: rm -rf /"));
    assert!(error("\n  sort\n").contains("there is no command before the directive"));
    assert!(error("kubectl get\n  sorted x\n").contains("sorted is not a directive"));
    assert!(error("kubectl get\n  until x\n").contains("until is not a directive of this step"));
    assert!(error("kubectl get\n  sort x\n").contains("sort does not accept a text"));
    assert!(error("kubectl get\n  ignore-lines\n").contains("ignore-lines requires a text"));
    assert!(error("kubectl apply -f - <<END\n").contains("has no end: a line END"));
    assert!(error("follow: kubectl logs\n").contains("`until` is missing"));
    assert!(error("terminal: kubectl exec\n  expect x\n  type x\n").contains("must be an `expect`"));
    assert!(error("terminal: kubectl exec\n  type x\n  expect x\n").contains("must be an `expect`"));
    assert!(error("kubectl exec\n  hang-up\n").contains("hang-up is not a directive"));
    assert!(error("walk: kubectl get\n").contains("walk is not a kind of step"));
    assert!(error("wait: kubectl get <<END\nEND\n").contains("accepts no input"));
}

#[test]
fn the_scripts_and_the_known_differences_are_valid() {
    let folder = paths::workspace().join("tests/real/commands");
    let scripts = Script::folder(&folder).unwrap();
    assert!(scripts.len() > 10 && scripts.iter().all(|script| !script.steps.is_empty()));
    for list in ["virtual.txt", "demo.txt"] {
        let known = std::fs::read_to_string(folder.join("known").join(list)).unwrap();
        Known::check(&Known::parse(&known).unwrap(), &scripts).unwrap();
    }
}

#[test]
fn no_two_scripts_use_the_same_namespace() {
    let scripts = Script::folder(&paths::workspace().join("tests/real/commands")).unwrap();
    let mut all: Vec<_> = scripts.iter().flat_map(|script| &script.namespaces).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "scripts run concurrently");
}
