//! Keys of an endpoint, and messages about mistakes.

use toml::de::DeTable;

use super::*;

const SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";

fn endpoint(text: &str) -> Result<ZmqEndpoint, Vec<String>> {
    let table = DeTable::parse(text).unwrap();
    read(table.get_ref()).map_err(|wrong| wrong.into_iter().map(|(_, text)| text).collect())
}

#[test]
fn an_address_is_enough() {
    let one = endpoint("listen = \"tcp://127.0.0.1:7470\"").unwrap();
    assert_eq!(
        one,
        ZmqEndpoint {
            name: "tcp://127.0.0.1:7470".to_owned(),
            ..ZmqEndpoint::new(one.place.listen().unwrap().clone(), "zmq".parse().unwrap())
        }
    );
    let text = "listen = \"ipc:///run/z\"\nname = \"shop\"\nqueue = \"orders\"\nrole = \"worker\"\nslots = 4\nretries = 2\n\
                topic = \"shop.\"\nerror-frame = \"E\"";
    let two = endpoint(text).unwrap();
    assert_eq!(
        (two.name.as_str(), two.queue.as_str(), two.slots, two.role),
        ("shop", "orders", Some(4), ZmqRole::Worker)
    );
    assert_eq!(
        (two.retries, two.topic.as_str(), two.error_frame.as_deref(), two.access),
        (2, "shop.", Some("E"), ZmqAccess::Null)
    );
}

#[test]
fn who_may_connect_is_written_with_its_mechanism() {
    let plain =
        endpoint("listen = \"127.0.0.1:0\"\nmechanism = \"plain\"\nusers = { ann = \"one\", bob = \"two\" }").unwrap();
    let users = [("ann", "one"), ("bob", "two")].map(|(name, password)| (name.to_owned(), password.to_owned()));
    assert_eq!(plain.access, ZmqAccess::Plain(users.into()));
    let keys = KeyPair::from_secret_text(SECRET).unwrap();
    let client = KeyPair::from_secret([7; 32]).public();
    let text =
        format!("listen = \"127.0.0.1:0\"\nmechanism = \"curve\"\nsecret-key = '{SECRET}'\nclient-keys = ['{client}']");
    assert_eq!(endpoint(&text).unwrap().access, ZmqAccess::Curve { keys: keys.clone(), clients: Some(vec![client]) });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{SECRET}\n")).unwrap();
    let path = file.path().display();
    let text =
        format!("listen = \"127.0.0.1:0\"\nmechanism = \"curve\"\nsecret-key-file = \"{path}\"\nclient-keys = \"any\"");
    assert_eq!(endpoint(&text).unwrap().access, ZmqAccess::Curve { keys, clients: None });
}

#[test]
fn mistakes_are_told() {
    let short = format!("mechanism = \"curve\"\nsecret-key = '{}'\nclient-keys = \"any\"", &SECRET[1..]);
    let no_clients = format!("mechanism = \"curve\"\nsecret-key = '{SECRET}'");
    let bad_client = format!("{no_clients}\nclient-keys = [\"x\"]");
    let table = [
        ("queu = \"x\"", "unknown key zmq.endpoint.queu; did you mean queue?"),
        ("queue = \"two words\"", "queue = \"two words\": expected the name of a queue"),
        ("role = \"chief\"", "role = \"chief\": expected one of client, worker"),
        ("slots = 0", "slots = 0: expected a whole number from 1 to 1000000"),
        ("topic = \"a b\"", "topic = \"a b\": expected the beginning of a topic"),
        ("mechanism = \"gssapi\"", "expected one of null, plain, curve"),
        ("mechanism = \"plain\"", "users: expected a table"),
        ("mechanism = \"plain\"\nusers = {}", "users: expected a table"),
        ("mechanism = \"plain\"\nusers = { ann = 1 }", "users: expected a table"),
        ("users = { ann = \"one\" }", "users does not apply to mechanism null"),
        ("mechanism = \"curve\"\nclient-keys = \"any\"", "needs one of secret-key and secret-key-file"),
        ("mechanism = \"curve\"\nsecret-key-file = \"/nowhere\"\nclient-keys = \"any\"", "cannot be read"),
        (&short, "invalid CURVE key: must be 40 characters of Z85"),
        (&no_clients, "mechanism curve needs client-keys"),
        (&bad_client, "expected public keys of 40 characters, or \"any\""),
    ];
    for (text, expected) in table {
        let wrong = endpoint(&format!("listen = \"127.0.0.1:0\"\n{text}")).unwrap_err();
        assert!(wrong.iter().any(|wrong| wrong.contains(expected)), "{text}: {wrong:?}");
        assert!(!wrong.concat().contains(&SECRET[1..]), "no secrets");
    }
    assert_eq!(endpoint("name = \"x\"").unwrap_err(), ["zmq.endpoint: needs one of listen and connect"]);
    assert!(endpoint("listen = \"udp://127.0.0.1:1\"").unwrap_err()[0].contains("expected an address like"));
    assert!(endpoint("listen = 7461").is_err());
}

#[test]
fn an_endpoint_can_connect() {
    let dials = endpoint("connect = \"tcp://legacy-1:5555\"\nsocket = \"dealer\"\nqueue = \"q\"").unwrap();
    let address = "tcp://legacy-1:5555".to_owned();
    assert_eq!(dials.place, ZmqPlace::Connect { address, socket: SocketType::Dealer });
    assert_eq!(dials.name, "tcp://legacy-1:5555");
    let table = [
        ("connect = \"tcp://legacy-1\"\nsocket = \"dealer\"", "expected an address like"),
        ("connect = \"tcp://legacy-1:0\"\nsocket = \"dealer\"", "expected an address like"),
        ("connect = \"tcp://legacy-1:1\"", "connect needs socket"),
        ("connect = \"tcp://legacy-1:1\"\nsocket = \"pair\"", "expected one of dealer, sub, pub, push, pull"),
        (
            "connect = \"tcp://a:1\"\nlisten = \"tcp://127.0.0.1:1\"\nsocket = \"sub\"",
            "needs one of listen and connect",
        ),
        ("listen = \"tcp://127.0.0.1:1\"\nsocket = \"sub\"", "socket applies to connect only"),
    ];
    for (text, expected) in table {
        let wrong = endpoint(text).unwrap_err();
        assert!(wrong.iter().any(|wrong| wrong.contains(expected)), "{text}: {wrong:?}");
    }
}

#[test]
fn an_endpoint_that_connects_shows_who_it_is() {
    let dials = |text: &str| endpoint(&format!("connect = \"tcp://a:1\"\nsocket = \"sub\"\n{text}"));
    let (user, password) = ("ann".to_owned(), "her password".to_owned());
    let plain = ZmqAccess::PlainClient { user, password };
    let text = "mechanism = \"plain\"\nuser = \"ann\"\npassword = \"her password\"";
    assert_eq!(dials(text).unwrap().access, plain);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "her password\n").unwrap();
    let text = format!("mechanism = \"plain\"\nuser = \"ann\"\npassword-file = \"{}\"", file.path().display());
    assert_eq!(dials(&text).unwrap().access, plain);
    let (keys, server) = (KeyPair::from_secret_text(SECRET).unwrap(), KeyPair::from_secret([7; 32]).public());
    let text = format!("mechanism = \"curve\"\nsecret-key = '{SECRET}'\nserver-key = '{server}'");
    assert_eq!(dials(&text).unwrap().access, ZmqAccess::CurveClient { keys, server });
    let long = format!("mechanism = \"plain\"\nuser = \"ann\"\npassword = \"{}\"", "x".repeat(256));
    let no_server = format!("mechanism = \"curve\"\nsecret-key = '{SECRET}'");
    let bad_server = format!("{no_server}\nserver-key = \"x\"");
    let clients = format!("{no_server}\nserver-key = '{server}'\nclient-keys = \"any\"");
    let table = [
        ("mechanism = \"plain\"\npassword = \"x\"", "mechanism plain needs user"),
        ("mechanism = \"plain\"\nuser = \"ann\"", "mechanism plain needs one of password and password-file"),
        ("mechanism = \"plain\"\nuser = \"ann\"\npassword = 7", "password: expected text"),
        ("mechanism = \"plain\"\nuser = 7\npassword = \"x\"", "user = 7: expected a name of at most 255 bytes"),
        (&long, "password: expected 1 to 255 bytes"),
        ("mechanism = \"plain\"\nusers = { ann = \"x\" }", "users does not apply to mechanism plain with connect"),
        ("user = \"ann\"", "user does not apply to mechanism null with connect"),
        (&no_server, "mechanism curve needs server-key"),
        (&bad_server, "server-key = \"x\": expected a public key of 40 characters"),
        (&clients, "client-keys does not apply to mechanism curve with connect"),
    ];
    for (text, expected) in table {
        let wrong = dials(text).unwrap_err();
        assert!(wrong.iter().any(|wrong| wrong.contains(expected)), "{text}: {wrong:?}");
        assert!(!wrong.concat().contains(SECRET) && !wrong.concat().contains("xxx"), "no secrets");
    }
    let listens = endpoint("listen = \"127.0.0.1:0\"\nmechanism = \"plain\"\nuser = \"ann\"").unwrap_err();
    assert!(listens.iter().any(|wrong| wrong.contains("user does not apply to mechanism plain with listen")));
}

#[test]
fn every_key_is_documented() {
    let page = include_str!("../../../../../docs/reference/zeromq.md");
    for key in KEYS {
        assert!(page.lines().any(|line| line.starts_with("| `") && line.contains(&format!("`{key}`"))), "{key}");
    }
}

#[test]
fn names_differ_and_endpoints_are_limited() {
    let one = endpoint("listen = \"127.0.0.1:0\"").unwrap();
    let problems = |endpoints: &[ZmqEndpoint]| {
        let mut problems = Vec::new();
        check(endpoints, &mut problems);
        problems.len()
    };
    assert_eq!(problems(std::slice::from_ref(&one)), 0);
    assert_eq!(problems(&[one.clone(), one.clone()]), 1);
    let many: Vec<ZmqEndpoint> =
        (0..=limits::ZMQ_ENDPOINTS_MAX).map(|number| ZmqEndpoint { name: number.to_string(), ..one.clone() }).collect();
    assert_eq!((problems(&many), problems(&many[1..])), (1, 0));
}
