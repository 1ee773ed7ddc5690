//! A ring of real brokers on hosts of their own: members that are killed, cut off, paused, ended and started again, under a
//! stream of publications.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use turno_e2e::{Circle, heard_up_to, wait};

/// Waits until so many more were published.
fn more(count: &AtomicU64, by: u64) {
    let goal = count.load(Ordering::Relaxed) + by;
    wait::until("publications go on", || count.load(Ordering::Relaxed) >= goal);
}

fn all(last: u64) -> Vec<u64> {
    (1..=last).collect()
}

fn id_of(circle: &mut Circle, at: usize) -> Pid {
    let id = circle.broker_mut(at).process().id();
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id")
}

/// Proves S3.18, S3.21, S3.22, S3.24, S3.45 and I16: a member of five hosts is killed; the others close the circle, and each of them gets
/// every publication once and in order. Started again it is a member again.
#[test]
fn a_killed_member_is_closed_around() {
    let mut circle = Circle::start(5, &[]);
    let listeners = [0, 1, 3, 4].map(|at| circle.listen(at));
    let (last, ()) = circle.publishing(0, |circle, count| {
        more(count, 100);
        circle.kill(2);
        more(count, 100);
        circle.wait_whole();
        more(count, 100);
        circle.begin(2, Some(0));
        circle.wait_whole();
        more(count, 100);
    });
    for listener in &listeners {
        assert_eq!(heard_up_to(listener, last), all(last));
    }
}

/// Proves S3.22 (GAP) and S3.25: two neighbours fall at once, then all but one; it goes on alone and can be joined.
#[test]
fn several_fall_at_once() {
    let mut circle = Circle::start(5, &["--ring-fast"]);
    let listener = circle.listen(0);
    let (last, ()) = circle.publishing(0, |circle, count| {
        circle.kill(1);
        circle.kill(2);
        circle.wait_whole();
        more(count, 50);
        circle.kill(3);
        circle.kill(4);
        circle.wait_whole();
        more(count, 50);
        for at in [3, 1, 4, 2] {
            circle.begin(at, Some(0));
        }
        circle.wait_whole();
        more(count, 50);
    });
    assert_eq!(heard_up_to(&listener, last), all(last));
}

/// Proves S3.20, S3.23 and I17: a member that is paused for long is closed around, and joins again when it goes on. Nobody
/// hears anything twice, and those that stayed hear all.
#[test]
fn a_paused_member_comes_back() {
    let mut circle = Circle::start(4, &["--ring-fast"]);
    let listeners: Vec<_> = (0..4).map(|at| circle.listen(at)).collect();
    let paused = id_of(&mut circle, 2);
    let (last, ()) = circle.publishing(0, |circle, count| {
        more(count, 50);
        kill_process(paused, Signal::STOP).expect("our own broker");
        circle.wait_whole_but(&[2]);
        more(count, 50);
        kill_process(paused, Signal::CONT).expect("our own broker");
        circle.wait_whole();
        more(count, 50);
    });
    for (at, listener) in listeners.iter().enumerate() {
        let heard = heard_up_to(listener, last);
        if at == 2 {
            assert!(heard.is_sorted_by(|a, b| a < b), "once each and in order: {heard:?}");
        } else {
            assert_eq!(heard, all(last), "member {at}");
        }
    }
}

/// A cable between neighbours is cut in one direction, then a host loses its cable altogether; both are fixed. Without
/// namespaces there are no cables, and nothing to show.
#[test]
fn a_cut_ring_heals() {
    let mut circle = Circle::start(4, &["--ring-fast"]);
    if !circle.net().has_namespaces() {
        return;
    }
    let listeners: Vec<_> = (0..4).map(|at| circle.listen(at)).collect();
    let (last, ()) = circle.publishing(0, |circle, count| {
        let next = usize::from(circle.view(1).next.expect("a next one").get()) - 1;
        circle.net().mute(1, next);
        more(count, 300);
        circle.net().unmute(1, next);
        circle.wait_whole();
        circle.net().unplug(3);
        circle.wait_whole_but(&[3]);
        more(count, 50);
        circle.net().plug(3);
        circle.wait_whole();
        more(count, 50);
    });
    for (at, listener) in listeners.iter().enumerate() {
        let heard = heard_up_to(listener, last);
        assert!(heard.is_sorted_by(|a, b| a < b), "member {at} hears each once and in order");
        if at == 0 {
            assert_eq!(heard, all(last));
        }
    }
}

/// Proves S3.26, S3.29, S3.14 and I16: every member but the publisher's is ended in order and started again, one after the
/// other, under a stream; a member that stays hears all of it once and in order.
#[test]
fn a_rolling_restart_loses_nothing_for_those_who_stay() {
    let mut circle = Circle::start(5, &[]);
    let stays = circle.listen(0);
    let mut others = Vec::new();
    let (last, ()) = circle.publishing(0, |circle, count| {
        for at in 1..5 {
            // Somebody who listens while another member comes and goes.
            let witness = if at == 4 { 1 } else { at + 1 };
            let listener = circle.listen(witness);
            more(count, 50);
            circle.end(at);
            more(count, 50);
            circle.begin(at, Some(0));
            circle.wait_whole();
            more(count, 50);
            others.push((witness, count.load(Ordering::Relaxed), listener));
        }
    });
    assert_eq!(heard_up_to(&stays, last), all(last));
    for (witness, until, listener) in others {
        // Its own broker may have been ended after that.
        let lines = listener.stdout();
        let heard: Vec<u64> = lines.iter().filter_map(|line| line.strip_prefix("news ")?.parse().ok()).collect();
        let heard: Vec<u64> = heard.into_iter().take_while(|number| *number <= until).collect();
        let first = *heard.first().expect("something was heard");
        assert_eq!(heard, (first..=until).collect::<Vec<_>>(), "at member {witness}");
    }
}
