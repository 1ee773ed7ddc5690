//! Tasks from inputs of every kind.

use std::path::PathBuf;

use turno_proto::items;

use super::*;

/// Tasks from an input: names of columns, and the fields of each; or the error.
type Made = Result<(Vec<String>, Vec<Vec<String>>), String>;

/// An input, its columns and its items.
type Case<'a> = (&'a [u8], &'a [&'a str], &'a [&'a [&'a str]]);

fn made(source: &Source, stdin: &[u8]) -> Made {
    match tasks(source, stdin) {
        Err(failure) => Err(failure.what().to_owned()),
        Ok(JobTasks { array, columns, items, .. }) => {
            let fields = |place| items::get(&items, place).unwrap().into_iter().map(ToOwned::to_owned).collect();
            assert_eq!((array.first, array.step, Some(array.count)), (1, 1, items::count(&items)));
            Ok((columns, (0..array.count).map(fields).collect()))
        }
    }
}

fn stdin() -> Option<PathBuf> {
    Some(PathBuf::from("-"))
}

fn lines(input: &[u8]) -> Made {
    made(&Source { each_line: stdin(), ..Source::default() }, input)
}

fn csv(input: &[u8]) -> Made {
    made(&Source { each_csv: stdin(), ..Source::default() }, input)
}

fn json(input: &[u8]) -> Made {
    made(&Source { each_json: stdin(), ..Source::default() }, input)
}

fn good(columns: &[&str], rows: &[&[&str]]) -> Made {
    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    Ok((strings(columns), rows.iter().map(|row| strings(row)).collect()))
}

fn refused(made: Made, expected: &str) {
    let said = made.expect_err(expected);
    assert!(said.contains(expected), "{said} instead of {expected}");
}

#[test]
fn each_line_is_an_item() {
    let table: [(&[u8], &[&[&str]]); 6] = [
        (b"a\nb\n", &[&["a"], &["b"]]),
        (b"a\nb", &[&["a"], &["b"]]),
        (b"a b\r\n\r\n\n c \r\n", &[&["a b"], &[" c "]]),
        (b"\xef\xbb\xbfa\n", &[&["a"]]),
        ("ü{}'\"\n".as_bytes(), &[&["ü{}'\""]]),
        (b"a\rb", &[&["a\rb"]]),
    ];
    for (input, expected) in table {
        assert_eq!(lines(input), good(&[], expected));
    }
    refused(lines(b""), "no task in standard input");
    refused(lines(b"\n\r\n\n"), "no task in standard input");
    refused(lines(b"a\n\nb\xff\n"), "standard input:3: not valid UTF-8");
    refused(lines(b"a\nb\0c\n"), "standard input:2: it contains a NUL byte");
}

#[test]
fn each_row_is_an_item_with_named_fields() {
    let table: [Case<'_>; 6] = [
        (b"a,b\n1,2\n3,4\n", &["a", "b"], &[&["1", "2"], &["3", "4"]]),
        (b"a\r\n1\r\n\r\n2", &["a"], &[&["1"], &["2"]]),
        (b"a, b\n\"1,5\",\"say \"\"hi\"\"\"\n", &["a", "b"], &[&["1,5", "say \"hi\""]]),
        (b"a,b\n\"two\nlines\",x\n", &["a", "b"], &[&["two\nlines", "x"]]),
        (b"\xef\xbb\xbfa,b\n,\n", &["a", "b"], &[&["", ""]]),
        (b"a\n x \n", &["a"], &[&[" x "]]),
    ];
    for (input, columns, rows) in table {
        assert_eq!(csv(input), good(columns, rows));
    }
    refused(csv(b""), "no task in standard input");
    refused(csv(b"a,b\n"), "no task in standard input");
    refused(csv(b"a,b\n1,2\n3\n"), "standard input:3: 1 field, but the header has 2 columns");
    refused(csv(b"a,b\n1,2,3\n"), "standard input:2: 3 fields, but the header has 2 columns");
    refused(csv(b"a,b\n\"x\ny\",2\n1,2,3\n"), "standard input:4: 3 fields");
    refused(csv(b"a,,c\n1,2,3\n"), "standard input:1: column 2 has no name");
    refused(csv(b"a,b,a\n1,2,3\n"), "standard input:1: two columns are called \"a\"");
    refused(csv(b"a\n1\n\xff\n"), "standard input:3: not valid UTF-8");
    refused(csv(b"a\n1\n\0\n"), "standard input:3: it contains a NUL byte");
    let wide =
        vec!["x"; 1_001].iter().enumerate().map(|(place, x)| format!("{x}{place}")).collect::<Vec<_>>().join(",");
    refused(csv(wide.as_bytes()), "too many columns");
}

#[test]
fn each_json_value_is_an_item() {
    let table: [Case<'_>; 7] = [
        (
            b"[\"a b\", 1.50, true, null, 123456789012345678901234567890]",
            &[],
            &[&["a b"], &["1.50"], &["true"], &[""], &["123456789012345678901234567890"]],
        ),
        (b"\"a\"\n\n\"b\"\n", &[], &[&["a"], &["b"]]),
        (b"{\"a\": 1, \"b\": \"x\"}\n{\"b\": null, \"a\": [1, 2]}\n", &["a", "b"], &[&["1", "x"], &["[1, 2]", ""]]),
        (b" [ {\"a\": {\"k\": 1}} ] ", &["a"], &[&["{\"k\": 1}"]]),
        (b"{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n", &["a"], &[&["1"], &["2"]]),
        (b"[[1], [2]]", &[], &[&["[1]"], &["[2]"]]),
        (b"\xef\xbb\xbf[\"\\u00fc\"]", &[], &[&["ü"]]),
    ];
    for (input, columns, rows) in table {
        assert_eq!(json(input), good(columns, rows));
    }
    refused(json(b""), "no task in standard input");
    refused(json(b"[]"), "no task in standard input");
    refused(json(b"{\"a\": 1, \"b\": 2}\n{\"b\": 1}\n"), "standard input:2: the member \"a\" is missing");
    refused(json(b"{\"a\": 1}\n\n{\"a\": 1, \"b\": 1}\n"), "standard input:3: the first object has no member \"b\"");
    refused(json(b"{\"a\": 1, \"a\": 2}\n"), "standard input:1: duplicate member \"a\"");
    refused(json(b"[{}]"), "standard input:1: the object is empty");
    refused(json(b"[{\"a\": 1},\n2]"), "standard input:2: a value that is not an object follows an object");
    refused(json(b"[1,\n{\"a\": 1}]"), "standard input:2: an object follows a value that is not an object");
    refused(json(b"{\"a\": 1}\n{\"a\": \n"), "standard input:3: not valid JSON");
    refused(json(b"[1, 2"), "standard input:1: not valid JSON");
    refused(json(b"[1] 2"), "standard input:1: not valid JSON");
    refused(json(b"a,b\n1,2\n"), "standard input:1: not valid JSON");
    refused(json(b"[\"a\\u0000b\"]"), "standard input:1: it contains a NUL byte");
    refused(json(b"[1,\n\"\xff\"]"), "standard input:2: not valid UTF-8");
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    assert!(json(&deep).is_ok_and(|(_, items)| items.len() == 1), "however deep it is");
}

#[test]
fn each_path_is_an_item_in_order_of_name() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b.csv", "a.csv", ".hidden.csv", "c.txt", "d/e.csv", "d/f/g.csv"] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let root = dir.path().to_str().unwrap();
    let found = |pattern: &str| {
        let glob = Some(format!("{root}/{pattern}"));
        let (_, items) = made(&Source { glob, ..Source::default() }, b"")?;
        Ok::<_, String>(items.concat().iter().map(|path| path.replace(&format!("{root}/"), "")).collect::<Vec<_>>())
    };
    assert_eq!(found("*.csv").unwrap(), ["a.csv", "b.csv"]);
    assert_eq!(found("**/*.csv").unwrap(), ["a.csv", "b.csv", "d/e.csv", "d/f/g.csv"]);
    assert_eq!(found("d*").unwrap(), ["d"]);
    assert!(found("*.none").unwrap_err().contains("nothing matches"));
    assert!(found("a***").unwrap_err().contains("invalid pattern"));
    let nothing = tasks(&Source { glob: Some(format!("{root}/none")), ..Source::default() }, io::empty());
    assert_eq!(nothing.unwrap_err().exit(), 4);
}

#[test]
fn what_is_too_much_for_one_job_is_refused() {
    let line = [vec![b'x'; 1_000], vec![b'\n']].concat();
    refused(lines(&line.repeat(13_000)), "the input is too large for one job");
    let endless = tasks(&Source { each_line: stdin(), ..Source::default() }, io::repeat(b'x'));
    assert!(endless.unwrap_err().what().contains("too large for one job"));
    assert_eq!(lines(&b"x\n".repeat(1_000_000)).unwrap().1.len(), 1_000_000);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let source = Source { each_csv: Some(PathBuf::from("/no/such/file.csv")), ..Source::default() };
    refused(made(&source, b""), "cannot read /no/such/file.csv");
}
