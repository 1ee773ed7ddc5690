//! The file that names the hosts: one a line, with what is special about it.

use turno_broker::config::nearest;
use turno_proto::model::Code;

use crate::cli::error::Failure;

/// The keys of a line beside the host.
const KEYS: [&str; 6] = ["slots", "name", "label", "pool", "work-dir", "turno"];

/// One host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Host {
    /// The host, as given to ssh.
    pub(super) address: String,
    /// Words for `turno worker start` there.
    pub(super) options: Vec<String>,
    /// The name of its worker; that of the host if it is not given.
    pub(super) name: String,
    /// The program there, if it is not found by its name.
    pub(super) turno: Option<String>,
}

/// Reads the file's text; `place` names it in errors.
pub(super) fn read(place: &str, text: &str) -> Result<Vec<Host>, Failure> {
    let mut hosts: Vec<(usize, Host)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split_once('#').map_or(line, |(before, _)| before);
        let Some(host) = host(line).map_err(|why| bad(place, number, &why))? else { continue };
        if let Some((first, _)) = hosts.iter().find(|(_, known)| known.name == host.name) {
            let why = format!(
                "duplicate worker name {}, first used in line {first}; set another name= in one of them",
                host.name
            );
            return Err(bad(place, number, &why));
        }
        hosts.push((number, host));
    }
    if hosts.is_empty() {
        return Err(Failure::new(Code::BadUsage, format!("{place} contains no host"))
            .why("a line is a host as ssh knows it, then slots=N, name=NAME, label=KEY=VALUE, pool=P, work-dir=DIR, turno=PATH")
            .fix("write one host per line, for example: node1 slots=8"));
    }
    Ok(hosts.into_iter().map(|(_, host)| host).collect())
}

fn bad(place: &str, line: usize, why: &str) -> Failure {
    Failure::new(Code::BadUsage, format!("{place}:{line}: {why}"))
        .why("a line is a host as ssh knows it, then slots=N, name=NAME, label=KEY=VALUE, pool=P, work-dir=DIR, turno=PATH")
        .fix("correct that line")
}

/// The host of a line; `None` if it has none.
fn host(line: &str) -> Result<Option<Host>, String> {
    let mut words = line.split_whitespace();
    let Some(address) = words.next() else { return Ok(None) };
    if address.starts_with('-') {
        return Err(format!("invalid host {address}: ssh would read it as an option"));
    }
    if address.contains('=') {
        return Err(format!("invalid host {address}: the host comes first"));
    }
    let mut host = Host { address: address.to_owned(), name: address.to_owned(), ..Host::default() };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("{word} is not KEY=VALUE"))?;
        match key {
            _ if value.is_empty() => return Err(format!("{key}= has no value")),
            "name" => value.clone_into(&mut host.name),
            "turno" => host.turno = Some(value.to_owned()),
            "slots" | "label" | "pool" | "work-dir" => host.options.extend([format!("--{key}"), value.to_owned()]),
            _ => {
                let meant = nearest(key, KEYS).map(|key| format!("; did you mean {key}?")).unwrap_or_default();
                return Err(format!("unknown key {key}{meant}"));
            }
        }
    }
    Ok(Some(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_host_and_what_is_special_about_it() {
        let text =
            "# mine\nnode1\n\nme@node2 slots=8 label=gpu=yes pool=big # fast\nnode3 name=c work-dir=/x turno=/opt/t\n";
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let named = |address: &str, name: &str| Host { address: address.into(), name: name.into(), ..Host::default() };
        let expected = [
            named("node1", "node1"),
            Host {
                options: words(&["--slots", "8", "--label", "gpu=yes", "--pool", "big"]),
                ..named("me@node2", "me@node2")
            },
            Host { options: words(&["--work-dir", "/x"]), turno: Some("/opt/t".into()), ..named("node3", "c") },
        ];
        assert_eq!(read("h", text).unwrap(), expected);
    }

    #[test]
    fn what_is_no_host_is_told_with_its_line() {
        let table = [
            ("", "h contains no host"),
            ("# only this\n", "h contains no host"),
            ("a\n-oProxyCommand=x\n", "h:2: invalid host -oProxyCommand=x: ssh would read it as an option"),
            ("slots=8\n", "h:1: invalid host slots=8: the host comes first"),
            ("a slots\n", "h:1: slots is not KEY=VALUE"),
            ("a slots=\n", "h:1: slots= has no value"),
            ("a slot=8\n", "h:1: unknown key slot; did you mean slots?"),
            (
                "a\nb\na slots=2\n",
                "h:3: duplicate worker name a, first used in line 1; set another name= in one of them",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read("h", text).unwrap_err().what(), expected, "{text:?}");
        }
        assert_eq!(read("h", "a\na name=b\n").unwrap().len(), 2);
    }
}
