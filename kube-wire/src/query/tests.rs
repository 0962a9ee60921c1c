use proptest::prelude::*;

use super::*;

fn edited(raw: &str, edit: impl FnOnce(&mut Query<'_>)) -> String {
    let mut query = Query::new(raw);
    edit(&mut query);
    query.as_str().to_owned()
}

#[test]
fn keys_and_values_are_decoded() {
    let query = Query::new("a=1&%62=x%20y+z&c&d=&a=2&fieldSelector=metadata.name=x");
    assert_eq!(query.first("a").unwrap().unwrap(), "1");
    assert_eq!(query.first("b").unwrap().unwrap(), "x y z");
    assert_eq!(query.first("c").unwrap().unwrap(), "");
    assert_eq!(query.first("d").unwrap().unwrap(), "");
    assert_eq!(query.first("A").unwrap(), None);
    assert_eq!(query.only("fieldSelector").unwrap().unwrap(), "metadata.name=x");
    assert_eq!(query.only("a"), Err(QueryError::Repeated { key: "a" }));
    assert_eq!(query.all("a").map(Result::unwrap).collect::<Vec<_>>(), ["1", "2"]);
}

#[test]
fn edits_do_not_change_other_parameters() {
    assert_eq!(edited("x=%7e&a=1&&y=+", |query| query.set("a", "2&3")), "x=%7e&a=2%263&&y=+");
    assert_eq!(edited("a=1&x=1&%61=2", |query| query.set("a", "3")), "a=3&x=1");
    assert_eq!(edited("", |query| query.set("a", "3")), "a=3");
    assert_eq!(edited("x", |query| query.set("a", "")), "x&a=");
    assert_eq!(edited("a=1&x=%41&a=2", |query| query.remove("a")), "x=%41");
    assert_eq!(edited("a=1", |query| query.remove("a")), "");
    assert_eq!(edited("x&&y", |query| query.remove("a")), "x&&y");
    assert_eq!(edited("a=1", |query| query.append("a", "é")), "a=1&a=%C3%A9");
}

#[test]
fn ambiguous_parameters_are_refused() {
    for bad in ["watch=%zz", "%zz=1", "a=%ff", "watch=true;x", "a;watch=true", "a=1&b=;"] {
        assert!(Query::new(bad).check().is_err(), "{bad}");
    }
    assert!(Query::new("watch=true;x").only("watch").is_err());
    assert_eq!(Query::new("a=%3B&&b").check(), Ok(()));
    assert_eq!(Query::new("&".repeat(MAX_PARAMETERS - 1)).check(), Ok(()));
    assert_eq!(Query::new("&".repeat(MAX_PARAMETERS)).check(), Err(QueryError::TooMany));
}

#[test]
fn booleans_are_true_unless_false_or_zero() {
    for (text, expected) in [
        ("watch=true", true),
        ("watch=1", true),
        ("watch=t", true),
        ("watch=True", true),
        ("watch=no", true),
        ("watch=00", true),
        ("watch", true),
        ("watch=", true),
        ("watch=0", false),
        ("watch=false", false),
        ("watch=FALSE", false),
        ("", false),
    ] {
        assert_eq!(ListOptions::parse(&Query::new(text)).unwrap().watch, expected, "{text}");
    }
}

#[test]
fn list_options_are_typed() {
    let query = Query::new(
        "allowWatchBookmarks=true&limit=500&continue=abc&resourceVersion=0&resourceVersionMatch=NotOlderThan&\
         sendInitialEvents=true&timeoutSeconds=317&labelSelector=a%3Db&timeout=32s",
    );
    let options = ListOptions::parse(&query).unwrap();
    assert_eq!(options.send_initial_events, Some(true));
    assert_eq!((&*options.label_selector, &*options.continue_token), ("a=b", "abc"));
    for bad in ["watch=1&watch=1", "continue=a&continue=a", "labelSelector=&labelSelector="] {
        assert!(ListOptions::parse(&Query::new(bad)).is_err(), "{bad}");
    }
    // The API server validates these numbers.
    assert!(ListOptions::parse(&Query::new("limit=x&limit=2&timeoutSeconds=")).is_ok());
}

#[test]
fn write_options_are_typed() {
    let query = Query::new("dryRun=All&fieldManager=kubectl&force=true&fieldValidation=Strict");
    let options = WriteOptions::parse(&query).unwrap();
    assert!(options.dry_run && options.force);
    assert_eq!((&*options.field_manager, &*options.field_validation), ("kubectl", "Strict"));
    let query = Query::new("propagationPolicy=Foreground&gracePeriodSeconds=0");
    let options = DeleteOptions::parse(&query).unwrap();
    assert_eq!((&*options.propagation_policy, options.grace_period_seconds), ("Foreground", Some(0)));
}

proptest! {
    #[test]
    fn a_value_that_was_set_is_returned(raw in "[a-c=&;%+0-9é]{0,20}", value in any::<String>()) {
        let mut query = Query::new(raw.as_str());
        let others: Vec<_> = query.pairs().filter(|pair| !pair.is("a")).map(|pair| (pair.key.to_owned(), pair.value.to_owned())).collect();
        query.set("a", &value);
        prop_assert_eq!(query.only("a").unwrap().unwrap(), value.as_str());
        let kept: Vec<_> = query.pairs().filter(|pair| !pair.is("a")).map(|pair| (pair.key.to_owned(), pair.value.to_owned())).collect();
        prop_assert_eq!(&kept, &others);
        query.remove("a");
        prop_assert!(!query.contains("a"));
        let kept: Vec<_> = query.pairs().map(|pair| (pair.key.to_owned(), pair.value.to_owned())).collect();
        prop_assert_eq!(kept, others);
    }

    #[test]
    fn no_text_panics(raw in any::<String>()) {
        let query = Query::new(raw.as_str());
        let checked = query.check();
        let options = ListOptions::parse(&query);
        if checked.is_err() {
            // `check` is at least as strict as the lookups.
            return Ok(());
        }
        if let Err(error) = options {
            let about_encoding = matches!(error, QueryError::Encoding { .. } | QueryError::Semicolon { .. });
            prop_assert!(!about_encoding);
        }
    }
}
