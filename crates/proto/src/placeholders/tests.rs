use proptest::prelude::*;

use super::*;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn with(word: &str, columns: &[&str]) -> Work {
    Work { argv: words(&[word]), columns: words(columns), ..Work::default() }
}

fn line(line: &str, columns: &[&str]) -> Work {
    Work { shell: true, ..with(line, columns) }
}

fn shape(fields: usize) -> Option<Shape> {
    Some(Shape { count: 3, fields, longest: 100 })
}

/// The first word of a command, filled.
fn word(work: &Work, given: PlaceholderValues<'_>) -> String {
    fill(work, given).argv.remove(0)
}

#[test]
fn braces_stand_for_the_item_or_the_number() {
    let table = [
        ("{}", "a b"),
        ("in/{}.csv", "in/a b.csv"),
        ("{}{}", "a ba b"),
        ("{{}}", "{}"),
        ("{{{}}}", "{a b}"),
        ("{{{{}}}}", "{{}}"),
        ("{{{{{}}}}}", "{{a b}}"),
        ("{{}", "{a b"),
        ("{}}", "a b}"),
        ("{\"a\":{}}", "{\"a\":a b}"),
        ("{\"a\":{\"b\":{}}}", "{\"a\":{\"b\":a b}}"),
        ("{{\"a\":1}}", "{{\"a\":1}}"),
        ("{ }", "{ }"),
        ("{a{}b}", "{aa bb}"),
        ("{a,b}", "{a,b}"),
        ("{name} {{name}}", "{name} {{name}}"),
        ("${HOME} ${}", "${HOME} $a b"),
        ("{", "{"),
        ("}{", "}{"),
        ("{{{", "{{{"),
        ("ü{}ü{", "üa bü{"),
        ("", ""),
    ];
    for (text, filled) in table {
        let work = with(text, &[]);
        assert_eq!(word(&work, PlaceholderValues::item(7, &["a b"])), filled, "{text}");
        assert_eq!(word(&work, PlaceholderValues::number(7)), filled.replace("a b", "7"), "{text}");
        assert_eq!(check(&work, shape(1)), Ok(()), "{text}");
        assert_eq!(check(&work, None), Ok(()), "{text}");
        assert_eq!(word(&Work { verbatim: true, ..work }, PlaceholderValues::number(7)), text, "meant as it is");
    }
}

#[test]
fn columns_have_names() {
    let columns = ["x", "first name", "rate-1"];
    let table = [
        ("{x}", "1"),
        ("{x}/{first name}/{rate-1}", "1/Ann/0.5"),
        ("{{x}}", "{x}"),
        ("{{{x}}}", "{1}"),
        ("{{}}", "{}"),
        ("{{other}}", "{other}"),
        ("{print $1}", "{print $1}"),
        ("{1..9}", "{1..9}"),
        ("{2}", "{2}"),
        ("${x} ${HOME}", "${x} ${HOME}"),
        ("${{x}}", "${x}"),
        ("{\"x\": {x}}", "{\"x\": 1}"),
    ];
    for (text, filled) in table {
        let work = with(text, &columns);
        assert_eq!(word(&work, PlaceholderValues::item(7, &["1", "Ann", "0.5"])), filled, "{text}");
        assert_eq!(check(&work, shape(3)), Ok(()), "{text}");
    }
    assert_eq!(word(&with("{}", &["x"]), PlaceholderValues::item(7, &["1"])), "1", "a single column needs no name");
    assert_eq!(word(&with("{y}", &["x", "y"]), PlaceholderValues::item(7, &["1"])), "{y}", "a field that is missing");
}

#[test]
fn parts_of_a_path_and_the_number_have_placeholders() {
    let table = [
        // The item, without extension, its name, that without extension, its directory.
        ("in/a b.tar.gz", ["in/a b.tar", "a b.tar.gz", "a b.tar", "in"]),
        ("/data/x.csv", ["/data/x", "x.csv", "x", "/data"]),
        ("x.csv", ["x", "x.csv", "x", "."]),
        ("/x", ["/x", "x", "x", "/"]),
        ("a.d/x", ["a.d/x", "x", "x", "a.d"]),
        ("a.d/.bashrc", ["a.d/.bashrc", ".bashrc", ".bashrc", "a.d"]),
        ("a//b.c//", ["a//b.c//", "b.c", "b", "a"]),
        ("x.", ["x", "x.", "x", "."]),
        ("//", ["//", "/", "/", "/"]),
        ("", ["", "", "", "."]),
        ("ü.ü", ["ü", "ü.ü", "ü", "."]),
    ];
    for (item, parts) in table {
        for (place, part) in ["{.}", "{/}", "{/.}", "{//}"].into_iter().zip(parts) {
            let work = with(place, &[]);
            assert_eq!(word(&work, PlaceholderValues::item(7, &[item])), part, "{place} of {item}");
            assert_eq!(word(&with(place, &["path"]), PlaceholderValues::item(7, &[item])), part, "{place} of {item}");
            assert_eq!((check(&work, shape(1)), has_places(&work)), (Ok(()), true), "{place}");
        }
    }
    for (text, filled) in
        [("{#}", "7"), ("{{#}}", "{#}"), ("run-{#}/{/.}", "run-7/x"), ("{{.}}", "{.}"), ("${#}", "${#}")]
    {
        assert_eq!(word(&with(text, &[]), PlaceholderValues::item(7, &["in/x.csv"])), filled, "{text}");
    }
    assert_eq!(
        word(&with("{#}{.}", &[]), PlaceholderValues::number(7)),
        "77",
        "the number is the item of a job without items"
    );
    assert_eq!(word(&with("{#}-{x}", &["x", "y"]), PlaceholderValues::item(7, &["a", "b"])), "7-a");
    assert_eq!(
        word(&with("{#}", &["#", "y"]), PlaceholderValues::item(7, &["a", "b"])),
        "a",
        "a column of that name goes first"
    );
    let work = line("cp {} out/{/.}-{#}", &[]);
    assert_eq!(
        fill(&work, PlaceholderValues::item(7, &["it's.x"])).argv,
        words(&["/bin/sh", "-c", "cp 'it'\\''s.x' out/'it'\\''s'-'7'"])
    );
}

#[test]
fn what_stands_for_nothing_is_named() {
    let columns = words(&["x", "y"]);
    let unknown = |name: &str| FillError::UnknownColumn { name: name.to_owned(), columns: columns.clone() };
    let two = |text: &str| Work { cwd: text.to_owned(), ..with("run", &["x", "y"]) };
    assert_eq!(check(&two("{z}"), shape(2)), Err(unknown("z")));
    assert_eq!(check(&two("{X}"), shape(2)), Err(unknown("X")));
    for place in ["{}", "{.}", "{/}", "{//}", "{/.}"] {
        let ambiguous = FillError::NoColumn { place: place.to_owned(), columns: columns.clone() };
        assert_eq!(ambiguous.hint(), format!("write {{{place}}} if you mean {place} itself"));
        assert_eq!(check(&two(place), shape(2)), Err(ambiguous));
    }
    assert_eq!(unknown("z").to_string(), "{z} is not a column; the columns are {x}, {y}");
    assert_eq!(unknown("z").hint(), "write {{z}} if you mean {z} itself");
    let many: Vec<String> = (0..25).map(|at| format!("c{at}")).collect();
    let text = FillError::NoColumn { place: "{}".to_owned(), columns: many }.to_string();
    assert!(text.starts_with("{} is ambiguous") && text.ends_with("{c19} and 5 more"), "{text}");
}

#[test]
fn directory_and_environment_are_filled_too() {
    let work = Work {
        argv: words(&["run", "--in", "{}"]),
        cwd: "/data/{}".to_owned(),
        env: vec![("SEED".to_owned(), "{}".to_owned()), ("{}".to_owned(), "x".to_owned())],
        ..Work::default()
    };
    let filled = FilledCommand {
        argv: words(&["run", "--in", "7"]),
        cwd: "/data/7".to_owned(),
        env: vec![("SEED".to_owned(), "7".to_owned()), ("{}".to_owned(), "x".to_owned())],
    };
    assert_eq!(fill(&work, PlaceholderValues::number(7)), filled);
    assert_eq!(check(&work, None), Err(FillError::InName { name: "{}".to_owned() }));
}

#[test]
fn a_shell_gets_one_word() {
    let table = [
        ("run {}", "it's", "run 'it'\\''s'"),
        ("run {} > {}.log", "a b", "run 'a b' > 'a b'.log"),
        ("echo {}>out", "2", "echo '2'>out"),
        ("run {}", "", "run ''"),
        ("run {}", "$(rm x); `rm y`\n\"", "run '$(rm x); `rm y`\n\"'"),
        ("run {{}}", "x", "run {}"),
        ("for f in {}; do echo \"$f\"; done", "x", "for f in 'x'; do echo \"$f\"; done"),
    ];
    for (text, item, filled) in table {
        let work = line(text, &[]);
        assert_eq!(fill(&work, PlaceholderValues::item(7, &[item])).argv, words(&["/bin/sh", "-c", filled]), "{text}");
        assert_eq!(check(&work, shape(1)), Ok(()), "{text}");
    }
    let work = Work { env: vec![("ITEM".to_owned(), "{}".to_owned())], ..line("run", &[]) };
    let env = fill(&work, PlaceholderValues::item(7, &["it's"])).env;
    assert_eq!(env, [("ITEM".to_owned(), "it's".to_owned())], "only a shell's line needs quotes");
    assert_eq!(check(&Work { argv: words(&["a", "b"]), ..work }, None), Err(FillError::ShellLine));
    let work = Work { verbatim: true, ..line("find . -exec rm {} ;", &[]) };
    assert_eq!(fill(&work, PlaceholderValues::number(1)).argv, words(&["/bin/sh", "-c", "find . -exec rm {} ;"]));
}

#[test]
fn odd_places_in_a_shells_line_are_refused() {
    let good = [
        "f={}; cat \"$f\"",
        "echo 'x' {} \"y\"",
        "echo \"it's\" {}",
        "echo \\' {}",
        "echo \"\\\"\" {}",
        "echo \"${HOME}/x\" {}",
        "echo $(cat {})",
        "echo `date` {}",
        "# it's\necho {}",
        "echo a#b'c' {}",
        "x=$((1+{}))",
        "cat <{}",
        "echo '{{}}' \"{{}}\"",
    ];
    for text in good {
        assert_eq!(check(&line(text, &[]), shape(1)), Ok(()), "{text}");
    }
    let odd = [
        ("echo '{}'", "inside quotes"),
        ("echo \"{}\"", "inside quotes"),
        ("echo \"${x:-{}}\"", "inside quotes"),
        ("awk '{print $1}' {} '{}'", "inside quotes"),
        ("# it's\necho '{}'", "inside quotes"),
        ("true # {}", "inside a comment"),
        ("echo `cat {}`", "inside backquotes"),
        ("echo \\{}", "after a backslash"),
        ("echo \"\\{}\"", "after a backslash"),
        ("echo ${}", "after a $"),
        ("echo \"$(cat {})\"", "after << or inside nested quotes"),
        ("echo \"$(echo \"{}\")\"", "after << or inside nested quotes"),
        ("echo \"`echo \"{}\"`\"", "after << or inside nested quotes"),
        ("echo $'it\\'s' {}", "after << or inside nested quotes"),
        ("cat <<END\n{}\nEND", "after << or inside nested quotes"),
    ];
    for (text, why) in odd {
        let place = "{}".to_owned();
        assert_eq!(check(&line(text, &[]), shape(1)), Err(FillError::OddPlace { place, why }), "{text}");
    }
    let error = check(&line("echo \"{x}\"", &["x", "y"]), shape(2)).unwrap_err();
    assert_eq!(error.to_string(), "{x} is inside quotes, where its value cannot be inserted as one word");
    assert_eq!(error.hint(), "assign it to a variable first: f={x}; … \"$f\"");
}

#[test]
fn columns_fit_their_items() {
    for (columns, items, good) in [
        (&["x", "y"][..], shape(2), true),
        (&["x"], shape(1), true),
        (&[], shape(1), true),
        (&[], None, true),
        (&["x", "y"], shape(3), false),
        (&[], shape(2), false),
        (&["x"], None, false),
        (&["x", "x"], shape(2), false),
        (&["", "x"], shape(2), false),
        (&["a}", "x"], shape(2), false),
    ] {
        let is = check(&with("run", columns), items);
        assert_eq!(is, if good { Ok(()) } else { Err(FillError::Columns) }, "{columns:?} {items:?}");
    }
}

#[test]
fn the_limits_hold() {
    let many = |count: usize| with(&"{}".repeat(count), &[]);
    assert_eq!(check(&many(FILL_PLACES_MAX), shape(1)), Ok(()));
    assert_eq!(check(&many(FILL_PLACES_MAX + 1), shape(1)), Err(FillError::TooMany));
    let long = |longest| Some(Shape { count: 1, fields: 1, longest });
    let most = (FILLED_BYTES_MAX / FILL_PLACES_MAX - 4) / 4;
    assert_eq!(check(&many(FILL_PLACES_MAX), long(most)), Ok(()));
    assert_eq!(check(&many(FILL_PLACES_MAX), long(most + 1)), Err(FillError::TooLong));
    assert_eq!(check(&with("run", &[]), long(FILLED_BYTES_MAX)), Ok(()), "nothing of it is put in");
}

#[test]
fn a_job_that_does_not_use_its_items_is_seen() {
    assert!(!has_places(&with("run", &[])));
    assert!(has_places(&with("{}", &[])));
    assert!(!has_places(&with("{x}", &[])));
    assert!(has_places(&with("{x}", &["x"])));
    assert!(!has_places(&with("{{x}} {{}}", &["x", "y"])));
    assert!(!has_places(&Work { verbatim: true, ..with("{}", &[]) }));
    assert!(has_places(&Work { cwd: "/{}".to_owned(), ..Work::default() }));
}

proptest! {
    /// Whatever is written, what was found to be good is filled within its bounds.
    #[test]
    fn any_text_is_filled(
        text in "[a{}$'\" ü]{0,30}",
        named: bool,
        shell: bool,
        item in "[^\\x00]{0,20}",
    ) {
        let columns: &[&str] = if named { &["a", "aa"] } else { &[] };
        let work = Work { shell, ..with(&text, columns) };
        let fields = vec![item.as_str(); columns.len().max(1)];
        let filled = fill(&work, PlaceholderValues::item(7, &fields));
        let items = Some(Shape { count: 1, fields: fields.len(), longest: item.len() });
        if check(&work, items).is_ok() {
            let bytes: usize = filled.argv.iter().map(String::len).sum();
            prop_assert!(bytes <= bytes_max(text.len(), item.len()) + "/bin/sh-c".len());
            if !has_places(&work) {
                prop_assert_eq!(fill(&work, PlaceholderValues::item(7, &vec!["other"; fields.len()])), filled);
            }
        }
    }

    /// A text whose braces are doubled is what it was.
    #[test]
    fn doubled_braces_are_braces(item in "[a-z]{1,3}", depth in 1_usize..4) {
        let text = format!("{}{}", "{{".repeat(depth), "}}".repeat(depth));
        let filled = word(&with(&text, &[]), PlaceholderValues::item(7, &[&item]));
        prop_assert_eq!(filled, format!("{}{}", "{".repeat(depth), "}".repeat(depth)));
    }
}
