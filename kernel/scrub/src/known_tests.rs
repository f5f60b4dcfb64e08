use super::*;

#[test]
fn what_is_learned_is_masked_from_then_on() {
    let known = Known::default();
    assert_eq!(known.mask("token abcdef-1"), "token abcdef-1");
    known.learn("abcdef-1\n");
    known.learn("short");
    assert_eq!(known.mask("token abcdef-1 and short"), "token [REDACTED] and short");
    assert!(!format!("{known:?}").contains("abcdef"));
}

fn seal() -> Seal {
    Seal::of(b"a key", "acme")
}

fn field(alias: &'static str, revision: u64) -> Field<'static> {
    Field { alias, field: "token", revision, kept: true }
}

fn rewritten(known: &Known, text: &str) -> String {
    Data::new(known.values()).text(text).into_owned()
}

/// A long value, and how many of its kind a budget has room for.
fn large(n: usize) -> String {
    format!("{n:04}").repeat(1000)
}

#[test]
fn what_is_in_the_wallet_is_not_pushed_out_by_what_was_fetched_or_was_there_before() {
    let known = Known::default();
    known.learn_field(&seal(), field("kept", 1), "kept-from-the-start");
    let many = 2 + learned::MOST_OTHERS / forms::of_parts(&large(0)).bytes();
    for n in 0..many {
        known.learn(&large(n));
        known.learn_field(&seal(), Field { kept: false, ..field("fetched", 1) }, &format!("token-{n:04}"));
    }
    assert_eq!(known.mask("kept-from-the-start"), "[REDACTED]");
    assert_eq!(known.mask(&format!("token-{:04}", many - 1)), "[REDACTED]", "a good one goes last");
    assert_eq!(known.mask(&large(0)), large(0), "the oldest of the others is forgotten");
    assert_eq!(known.mask(&large(many - 1)), "[REDACTED]");
}

#[test]
fn of_too_much_in_the_wallet_what_was_not_opened_for_the_longest_goes() {
    let known = Known::default();
    let aliases: Vec<&'static str> = (0..).map(|n: u32| &*n.to_string().leak()).take(400).collect();
    let many = 1 + learned::MOST_KEPT / forms::of_all_parts(&large(0)).bytes();
    assert!(many < aliases.len());
    let learn = |n: usize| known.learn_field(&seal(), field(aliases[n], 1), &large(n));
    (0..many - 1).for_each(learn);
    learn(0);
    (many - 1..many + 1).for_each(learn);
    assert_eq!(known.mask(&large(1)), large(1));
    assert_eq!(known.mask(&large(0)), "[REDACTED]");
    assert_eq!(known.mask(&large(many)), "[REDACTED]");
}

#[test]
fn data_has_what_stands_for_a_value_and_people_read_a_mark() {
    let known = Known::default();
    known.learn_field(&seal(), field("api", 1), "p@ss-word");
    let placeholder = seal().write("api", "token");
    assert_eq!(rewritten(&known, "a p@ss-word, p%40ss-word"), format!("a {placeholder}, {placeholder}"));
    assert_eq!(rewritten(&known, "cEBzcy13b3Jk"), seal().write("api", COMPUTED), "computed of it");
    known.retire("api");
    assert_eq!(rewritten(&known, "p@ss-word cEBzcy13b3Jk"), "[REDACTED] [REDACTED]", "nothing stands for it any more");
    known.learn_field(&seal(), field("api", 2), "p@ss-word");
    assert_eq!(known.mask("a p@ss-word"), "a [REDACTED]");
    let json =
        Data::new(known.values()).json(r#"{"p@ss-word":12345678901234567890123,"a":"p@ss-word"}"#, false).into_owned();
    assert_eq!(json, format!(r#"{{"p@ss-word":12345678901234567890123,"a":"{placeholder}"}}"#));
    let mut stream = Data::new(known.values()).stream();
    let mut bytes = stream.push(b"a p@ss-");
    bytes.extend(stream.push(b"word"));
    bytes.extend(stream.finish());
    assert_eq!(String::from_utf8(bytes).expect("text"), format!("a {placeholder}"));
}

#[test]
fn nothing_stands_for_a_value_that_its_field_had_before() {
    let known = Known::default();
    known.learn_field(&seal(), field("api", 1), "first-value");
    known.learn_field(&seal(), field("api", 3), "second-value");
    known.learn_field(&seal(), field("api", 2), "late-value");
    let placeholder = seal().write("api", "token");
    assert_eq!(
        rewritten(&known, "first-value second-value late-value"),
        format!("[REDACTED] {placeholder} [REDACTED]")
    );
    known.retire("api");
    assert_eq!(rewritten(&known, "second-value"), "[REDACTED]");
    known.learn_field(&seal(), field("api", 4), "first-value");
    assert_eq!(rewritten(&known, "first-value second-value"), format!("{placeholder} [REDACTED]"));
}

#[test]
fn of_several_credentials_with_one_value_the_preferred_one_stands_for_it() {
    let known = Known::default();
    for alias in ["b", "a", "c"] {
        known.learn_field(&seal(), field(alias, 1), "same-value");
    }
    let preferring = |aliases: &[&str]| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        Data::new(known.values()).preferring(aliases).text("same-value").into_owned()
    };
    for (preferred, stands) in [(&["c"][..], "c"), (&["x", "b"], "b"), (&[], "a"), (&["x"], "a")] {
        assert_eq!(preferring(preferred), seal().write(stands, "token"));
    }
}

#[test]
fn a_placeholder_stays_what_it_is_whatever_is_a_secret() {
    let known = Known::default();
    let placeholder = seal().write("my-secret-alias", "password");
    known.learn_field(&seal(), Field { field: "password", ..field("my-secret-alias", 1) }, "password");
    for secret in ["secret-alias", "SECRET~my", placeholder.split('~').nth(4).expect("a tag")] {
        known.learn(secret);
    }
    assert_eq!(rewritten(&known, "the password"), format!("the {placeholder}"));
    assert_eq!(rewritten(&known, &format!("a{placeholder}z")), format!("a{placeholder}z"), "twice is once");
    assert_eq!(known.mask(&placeholder), placeholder);
    let mut stream = Data::new(known.values()).stream();
    let text = format!("{}{placeholder} ", "x".repeat(100)).repeat(100);
    let mut out = Vec::new();
    text.as_bytes().chunks(7).for_each(|piece| out.extend(stream.push(piece)));
    out.extend(stream.finish());
    assert_eq!(String::from_utf8(out).expect("text"), text);
    let forged = "NOETL~SECRET~secret-alias~password~00000000000000000000000000000000~END";
    assert!(rewritten(&known, forged).starts_with("NOETL~SECRET~[REDACTED]~"), "without the seal it is text");
}

#[test]
fn words_of_the_host_are_left_in_what_tools_answer() {
    let known = Known::default();
    known.learn_field(&seal(), field("pg", 1), "postgres");
    known.learn_field(&seal(), field("other", 1), "postgres-2x");
    let results = Data::new(known.values()).of_results();
    assert_eq!(results.text("postgres_to_sqlite"), "postgres_to_sqlite");
    assert_eq!(results.text("postgres postgres-2x"), format!("postgres {}", seal().write("other", "token")));
    assert_eq!(rewritten(&known, "postgres"), seal().write("pg", "token"), "what comes in is not the host's");
}

#[test]
fn a_long_value_is_found_in_parts_too() {
    let known = Known::default();
    let long: String = (0..4_000).map(|n| format!("ü{n:x}")).collect();
    known.learn(&long);
    assert_eq!(known.mask(&long).replace("[REDACTED]", ""), "");
    assert!(known.mask(&long[..long.floor_char_boundary(long.len() / 2)]).starts_with("[REDACTED]"));
}

#[test]
fn a_tenants_secrets_are_masked_in_its_own_texts_and_in_the_operators() {
    learn_for("acme", "only-of-acme");
    let masked = |tenant| of_tenant(tenant).map(|known| known.mask("only-of-acme").into_owned());
    assert_eq!(masked("acme").as_deref(), Some("[REDACTED]"));
    assert_eq!(masked("other"), None);
    assert_eq!(mask_for("acme", "an only-of-acme"), "an [REDACTED]");
    assert_eq!(mask_for("other", "only-of-acme"), "only-of-acme");
    learn_for("beta", "only-of-beta");
    assert_eq!(mask_for_operator("only-of-acme, only-of-beta"), "[REDACTED], [REDACTED]");
}

#[test]
fn threads_that_learn_at_once_lose_nothing() {
    let known = Known::default();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let known = &known;
            scope.spawn(move || (0..25).for_each(|n| known.learn(&format!("value-{thread}-{n:02}"))));
        }
    });
    for (thread, n) in (0..4).flat_map(|thread| (0..25).map(move |n| (thread, n))) {
        assert_eq!(known.mask(&format!("value-{thread}-{n:02}")), "[REDACTED]");
    }
}

#[test]
fn what_looks_for_values_is_made_once_for_all_that_was_learned() {
    let known = Known::default();
    known.learn("first-value");
    known.learn("second-value");
    let values = known.values();
    known.learn("first-value");
    assert!(Arc::ptr_eq(&values, &known.values()), "a value that is known already changes nothing");
    known.learn("third-value");
    assert!(!Arc::ptr_eq(&values, &known.values()));
    assert!(known.values().are_in("a third-value") && !values.are_in("a third-value"));
}
