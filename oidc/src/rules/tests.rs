use serde_json::{Map, Value, json};

use super::*;

const NOW: u64 = 1_800_000_000;

fn rules() -> Rules {
    let prefixed = |claim: &str| Prefixed { claim: claim.to_owned(), prefix: "oidc:".to_owned() };
    Rules {
        issuer: HttpsUrl::issuer("https://login.example.com").unwrap(),
        audiences: vec!["atoll".to_owned(), "kubectl".to_owned()],
        username: prefixed("email"),
        groups: Some(prefixed("groups")),
        uid: Some("sub".to_owned()),
        required: vec![("hd".to_owned(), "example.com".to_owned())],
    }
}

fn claims(changes: &Value) -> Claims {
    let mut claims = json!({
        "iss": "https://login.example.com", "aud": ["other", "kubectl"], "sub": "u-1", "email": "jane@example.com",
        "groups": ["dev"], "hd": "example.com", "iat": NOW - 60, "nbf": NOW - 60, "exp": NOW + 60,
    });
    for (name, value) in changes.as_object().unwrap_or(&Map::new()) {
        claims[name] = value.clone();
    }
    let mut claims = claims.as_object().unwrap().clone();
    claims.retain(|_, value| *value != "absent");
    Claims::new(claims)
}

fn user(rules: &Rules, changes: &Value) -> Result<User, Refused> {
    rules.user(&claims(changes), SystemTime::UNIX_EPOCH + Duration::from_secs(NOW))
}

#[test]
fn names_get_their_prefix() {
    let found = user(&rules(), &json!({})).unwrap();
    assert_eq!(
        (found.name.as_str(), found.groups, found.uid),
        ("oidc:jane@example.com", vec!["oidc:dev".to_owned()], Some("u-1".to_owned()))
    );
    let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert_eq!((seconds(found.issued), seconds(found.expires)), (NOW - 60, NOW + 60));
    let groups = |value| user(&rules(), &json!({ "groups": value })).unwrap().groups;
    assert_eq!(groups(json!("dev")), ["oidc:dev"], "one text is a list");
    assert_eq!(groups(json!(["a", ""])), ["oidc:a"]);
    assert_eq!(groups(json!("absent")), Vec::<String>::new());
    assert_eq!(groups(json!(null)), Vec::<String>::new());
    assert_eq!(user(&rules(), &json!({"iat": "absent"})).unwrap().issued, SystemTime::UNIX_EPOCH);
    assert!(user(&rules(), &json!({"aud": "atoll", "email_verified": true})).is_ok());
}

#[test]
fn each_mistake_alone_is_refused() {
    let claim = |name: &str| Refused::Claim(name.to_owned());
    for (changes, refused) in [
        (json!({"iss": "https://login.example.com/"}), Refused::Issuer),
        (json!({"aud": "other"}), Refused::Audience),
        (json!({"aud": "absent"}), Refused::Audience),
        (json!({"aud": [7]}), claim("aud")),
        (json!({"exp": NOW - 1}), Refused::Expired),
        (json!({"exp": "absent"}), claim("exp")),
        (json!({"exp": "tomorrow"}), claim("exp")),
        (json!({"exp": -1}), claim("exp")),
        (json!({"exp": 1e300}), claim("exp")),
        (json!({"nbf": NOW + 301}), Refused::NotYet),
        (json!({"email": "absent"}), claim("email")),
        (json!({"email": ["jane"]}), claim("email")),
        (json!({"email": ""}), Refused::Reserved),
        (json!({"email_verified": false}), Refused::Email),
        (json!({"email_verified": "true"}), claim("email_verified")),
        (json!({"groups": {"dev": true}}), claim("groups")),
        (json!({"groups": ["dev", 7]}), claim("groups")),
        (json!({"groups": ["x".repeat(MAX_GROUPS)]}), Refused::TooManyGroups),
        (json!({"sub": "absent"}), claim("sub")),
        (json!({"hd": "absent"}), claim("hd")),
        (json!({"hd": "example.org"}), Refused::Required("hd".to_owned())),
        (json!({"hd": ["example.com"]}), claim("hd")),
    ] {
        assert_eq!(user(&rules(), &changes), Err(refused), "{changes}");
    }
    assert!(user(&rules(), &json!({"exp": NOW})).is_ok(), "as in go-oidc");
    assert!(user(&rules(), &json!({"nbf": NOW + 300})).is_ok(), "clocks differ");
}

#[test]
fn names_of_kubernetes_never_come_from_a_token() {
    let mut rules = rules();
    for prefix in ["", "sys"] {
        rules.username.prefix = prefix.to_owned();
        rules.groups.as_mut().unwrap().prefix = prefix.to_owned();
        let rest = if prefix.is_empty() { "system:" } else { "tem:" };
        for changes in [
            json!({"email": format!("{rest}admin")}),
            json!({"groups": ["dev", format!("{rest}masters")]}),
            json!({"groups": format!("{rest}masters")}),
        ] {
            assert_eq!(user(&rules, &changes), Err(Refused::Reserved), "{changes}");
        }
    }
}
