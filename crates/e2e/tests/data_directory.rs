//! The data directory: whose it is, and what is said when it cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use turno_e2e::{Broker, Peer, Place, Run, directory, wait};
use turno_proto::model::Slots;

const SOON: Duration = wait::PATIENCE;

/// What a broker says that cannot start, without the path of the place.
fn refused(place: &Place, by: &[&str], data: &Path) -> String {
    let data = data.display().to_string();
    let serve = place.turno_under(by, ["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    let run = Run::finish(serve, b"", SOON).expect(1);
    assert_eq!(run.text(), "", "stdout is for data");
    run.stderr.replace(&place.path().display().to_string(), "PLACE")
}

/// The first lines: what happened, and under which code.
#[track_caller]
fn assert_says(said: &str, what: &str, code: &str) {
    assert!(said.starts_with(&format!("error: {what}\n")), "{said}");
    assert!(said.ends_with(&format!("code: {code} (turno explain {code})\n")), "{said}");
}

/// One directory belongs to one broker; the first one does not notice the second.
#[test]
fn a_second_broker_is_refused() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    client.store(b"one", |_| {});
    let said = refused(&broker.place, &[], &broker.data());
    assert_says(&said, "the data directory PLACE/data/turno is in use by another broker", "data_in_use");
    assert!(said.contains("fix: stop the other broker, or choose another directory with --data"), "{said}");
    client.store(b"two", |_| {});
    assert_eq!(client.queue("q").ready, 2);
}

/// A directory that is not there is made, with all above it, for its owner alone.
#[test]
fn a_missing_directory_is_made() {
    let place = Place::new();
    let data = place.path().join("a/b/c");
    let mut broker = Broker::start_in(place, &["--data", &data.display().to_string()]);
    Peer::client(broker.address(), "q").store(b"x", |_| {});
    assert_eq!(broker.terminate(SOON), 0);
    for private in [&data, &data.join("store")] {
        let mode = fs::metadata(private).expect("it was made").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", private.display());
    }
    let segment = fs::metadata(data.join("store/segment-000001")).expect("a segment");
    assert_eq!(segment.permissions().mode() & 0o777, 0o600);
}

/// A file where a directory should be.
#[test]
fn a_file_is_no_directory() {
    let place = Place::new();
    let file = place.file("file", "mine");
    let said = refused(&place, &[], &file);
    assert_says(&said, "cannot create directory PLACE/file: File exists (os error 17)", "io");
    let said = refused(&place, &[], &file.join("below"));
    assert_says(&said, "cannot create directory PLACE/file/below: Not a directory (os error 20)", "io");
    assert_eq!(fs::read_to_string(&file).expect("our own file"), "mine");

    place.file("data/store", "mine");
    fs::set_permissions(place.path().join("data"), fs::Permissions::from_mode(0o700)).expect("our own directory");
    let said = refused(&place, &[], &place.path().join("data"));
    assert_says(
        &said,
        "cannot open the store in PLACE/data/store: cannot list the directory: Not a directory (os error 20)",
        "io",
    );
}

/// A directory that cannot be written to: nothing starts, nothing changes, and when it can be written to again all is
/// there.
#[test]
fn a_read_only_directory_is_refused() {
    let mut broker = Broker::start();
    Peer::client(broker.address(), "q").store(b"kept", |_| {});
    assert_eq!(broker.terminate(SOON), 0);
    let (data, place) = (broker.data(), broker.into_place());
    let before = directory::state(&data);
    // Root may write anywhere, but not to a file system that is mounted read-only.
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    let by = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, &data.display().to_string()];
    let said = refused(&place, &by, &data);
    assert_says(&said, "cannot open PLACE/data/turno/turno.lock: Read-only file system (os error 30)", "io");
    assert_eq!(directory::state(&data), before);
    let broker = Broker::start_in(place, &[]);
    assert_eq!(Peer::worker(broker.address(), "q", Slots::Limited(1), "w").delivery().1, b"kept");
}
