//! A request that would be late anyway is not handed out.

use turno_engine::Settings;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, ConnId};

use crate::harness::{Ask, Harness, ask};
use crate::seen::{Seen, delivered, reply, sent, turn, undelivered};

/// A harness whose one worker, with one slot, is done with a request after ten milliseconds. After eight of them the
/// estimate is between 12 and 13 ms.
struct Shop {
    harness: Harness,
    worker: ConnId,
    client: ConnId,
    seq: u32,
}

impl Shop {
    fn new() -> Self {
        let mut harness = Harness::with(Settings { drop_after: 0, ..Settings::default() });
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        Self { harness, worker, client, seq: 1_000 }
    }

    fn practised() -> Self {
        let mut shop = Self::new();
        shop.answers(8, 10);
        shop
    }

    /// So many requests, each answered after so long.
    fn answers(&mut self, times: u32, after_ms: u64) {
        for _ in 0..times {
            self.asks(after_ms);
            assert_eq!(self.harness.reply(self.worker, "sample", "r"), [reply(self.client, self.seq, "r")]);
        }
    }

    /// A request that the worker has for so long.
    fn asks(&mut self, for_ms: u64) {
        self.seq += 1;
        assert_eq!(self.harness.request(self.client, ask(self.seq, "q", "sample")), [turn(self.worker, "sample")]);
        assert_eq!(self.harness.pass(for_ms), []);
    }

    /// A send, which is no sample, keeps the worker busy until the head, of `within_ms`, has `left_ms` left.
    /// Returns what happens then.
    fn waits(&mut self, head: Ask, within_ms: u32, left_ms: u32, behind: Option<Ask>) -> Vec<Seen> {
        assert_eq!(self.harness.send(self.client, ask(900, "q", "busy")).1, [sent(self.worker, "busy")]);
        assert_eq!(self.harness.request(self.client, head.within(within_ms)), []);
        if let Some(behind) = behind {
            assert_eq!(self.harness.request(self.client, behind), []);
        }
        assert_eq!(self.harness.pass(u64::from(within_ms - left_ms)), []);
        self.harness.ack(self.worker, "busy")
    }

    /// Whether a request that has waited for long goes out with so much time left while another waits.
    fn takes(&mut self, left_ms: u32) -> bool {
        let got = self.waits(ask(1, "q", "head"), 10_000, left_ms, Some(ask(2, "q", "next").within(20_000)));
        let next = turn(self.worker, "next").left(Some(10_000 + left_ms));
        if got == [turn(self.worker, "head").left(Some(left_ms))] {
            return true;
        }
        assert_eq!(got, [undelivered(self.client, 1, Code::TimedOut), next]);
        false
    }
}

/// Proves S2.38 and I13: a request ends at once when a slot is free for it, others wait, most of its time is over and
/// the rest is too short for what workers take; if one of these does not hold it goes out.
#[test]
fn only_what_would_be_late_ends() {
    let rows = [
        ("it would be late", 8, 40, 12, true, true),
        ("it can be done in time", 8, 40, 13, true, false),
        ("nobody waits behind it", 8, 40, 12, false, false),
        ("nobody waits behind it, and it is all but over", 8, 40, 1, false, false),
        ("half of its time is left", 8, 24, 12, true, false),
        ("less than half of its time is left", 8, 25, 12, true, true),
        ("too few samples", 7, 40, 1, true, false),
        ("no samples", 0, 40, 1, true, false),
    ];
    for (what, samples, within, left, behind, ends) in rows {
        let mut shop = Shop::new();
        shop.answers(samples, 10);
        let behind = behind.then(|| ask(2, "q", "next"));
        let seen = shop.waits(ask(1, "q", "head"), within, left, behind);
        let expected = if ends {
            let left = 30_000 - (within - left);
            vec![undelivered(shop.client, 1, Code::TimedOut), turn(shop.worker, "next").left(Some(left))]
        } else {
            vec![turn(shop.worker, "head").left(Some(left))]
        };
        assert_eq!(seen, expected, "{what}");
        assert_eq!(shop.harness.counters().expired, u64::from(ends), "{what}");
    }
}

/// Proves I13: of a backlog that is late as a whole all but the last end, and the last has its chance.
#[test]
fn the_last_always_goes() {
    let mut shop = Shop::practised();
    let (client, worker) = (shop.client, shop.worker);
    assert_eq!(shop.harness.send(client, ask(900, "q", "busy")).1, [sent(worker, "busy")]);
    for seq in 1..=3 {
        assert_eq!(shop.harness.request(client, ask(seq, "q", &format!("r{seq}")).within(50)), []);
    }
    assert_eq!(shop.harness.pass(45), []);
    let expected = [
        undelivered(client, 1, Code::TimedOut),
        undelivered(client, 2, Code::TimedOut),
        turn(worker, "r3").left(Some(5)),
    ];
    assert_eq!(shop.harness.ack(worker, "busy"), expected);
}

/// Sends and no-reply requests wait for as long as they may: nobody waits for their reply.
#[test]
fn only_requests_for_a_reply_end() {
    let mut shop = Shop::practised();
    let (client, worker) = (shop.client, shop.worker);
    let seen = shop.waits(ask(1, "q", "head").no_reply(), 40, 1, Some(ask(2, "q", "next")));
    assert_eq!(seen, [turn(worker, "head").one_way().left(Some(1)), delivered(client, 1)]);

    let mut shop = Shop::practised();
    assert_eq!(shop.harness.send(client, ask(900, "q", "busy")).1, [sent(worker, "busy")]);
    assert_eq!(shop.harness.send(client, ask(1, "q", "head").within(40)).1, []);
    assert_eq!(shop.harness.send(client, ask(2, "q", "next")).1, []);
    assert_eq!(shop.harness.pass(39), []);
    assert_eq!(shop.harness.ack(worker, "busy"), [sent(worker, "head").left(Some(1))]);
    assert_eq!(shop.harness.counters().expired, 0);
}

/// A new message that finds a free slot has all its time, however little that is.
#[test]
fn a_new_message_always_goes() {
    let mut shop = Shop::practised();
    let got = shop.harness.request(shop.client, ask(1, "q", "a").within(1));
    assert_eq!(got, [turn(shop.worker, "a").left(Some(1))]);
}

/// The estimate follows the workers, up within a few samples and down within some more, and one that hangs does not
/// stand for the rest.
#[test]
fn the_estimate_follows_the_workers() {
    type Row = (&'static str, &'static [(u32, u64)], u32, bool);
    let rows: [Row; 7] = [
        ("as they are", &[(8, 10)], 13, true),
        ("slower", &[(8, 10), (4, 100)], 100, false),
        ("slower for a while", &[(8, 10), (40, 100)], 110, true),
        ("faster again", &[(8, 100), (40, 10)], 20, true),
        ("not yet faster", &[(8, 100), (2, 10)], 20, false),
        ("one hangs", &[(20, 10), (1, 9_000)], 50, true),
        ("many hang", &[(20, 10), (9, 9_000)], 4_000, false),
    ];
    for (what, samples, left, goes) in rows {
        let mut shop = Shop::new();
        for (times, after_ms) in samples {
            shop.answers(*times, *after_ms);
        }
        assert_eq!(shop.takes(left), goes, "{what}");
    }
}

/// REPLY, ACK and FAIL tell how long a request took, and so does one that runs out of time at its worker; what is
/// cancelled and what is no request does not.
#[test]
fn what_counts_as_a_sample() {
    type Way = fn(&mut Shop);
    let rows: [(&str, Way, bool); 6] = [
        ("reply", |shop| shop.answers(1, 100), true),
        (
            "ack",
            |shop| {
                shop.asks(100);
                assert_eq!(shop.harness.ack(shop.worker, "sample"), [reply(shop.client, shop.seq, "")]);
            },
            true,
        ),
        (
            "fail",
            |shop| {
                shop.asks(100);
                assert_eq!(shop.harness.fail(shop.worker, "sample", "no").len(), 1);
            },
            true,
        ),
        (
            "overrun",
            |shop| {
                shop.seq += 1;
                let question = ask(shop.seq, "q", "sample").within(100);
                assert_eq!(shop.harness.request(shop.client, question).len(), 1);
                assert_eq!(shop.harness.pass(100).len(), 2, "the caller and the worker are told");
                assert_eq!(shop.harness.ack(shop.worker, "sample"), []);
            },
            true,
        ),
        (
            "cancel",
            |shop| {
                shop.asks(100);
                assert_eq!(shop.harness.cancel(shop.client, shop.seq).len(), 2);
                assert_eq!(shop.harness.ack(shop.worker, "sample"), []);
            },
            false,
        ),
        (
            "send",
            |shop| {
                shop.seq += 1;
                assert_eq!(shop.harness.send(shop.client, ask(shop.seq, "q", "sample")).1.len(), 1);
                assert_eq!(shop.harness.pass(100), []);
                assert_eq!(shop.harness.ack(shop.worker, "sample"), []);
            },
            false,
        ),
    ];
    for (what, way, counts) in rows {
        let mut shop = Shop::new();
        for _ in 0..8 {
            way(&mut shop);
        }
        assert_eq!(shop.takes(50), !counts, "{what}");
    }
}

/// A costly head that would be late lets go of the worker that was kept for it.
#[test]
fn a_late_head_gives_up_its_reservation() {
    let mut shop = Shop::practised();
    let (client, worker) = (shop.client, shop.worker);
    assert_eq!(shop.harness.resize(worker, 2), Ok(vec![]));
    let next = ask(2, "q", "next");
    let seen = shop.waits(ask(1, "q", "head").cost(2), 40, 12, Some(next));
    assert_eq!(seen, [undelivered(client, 1, Code::TimedOut), turn(worker, "next").left(Some(29_972))]);
    assert_eq!(shop.harness.request(client, ask(3, "q", "more")), [turn(worker, "more")], "the other slot is free");
}

/// While it waits a request says what it waits for, as ever; once it has ended there is nothing to explain, and it
/// counts as expired, not as delivered.
#[test]
fn a_late_request_is_told_like_an_expired_one() {
    let mut shop = Shop::practised();
    let (client, worker) = (shop.client, shop.worker);
    let before = shop.harness.queue("q").counters;
    assert_eq!(shop.harness.send(client, ask(900, "q", "busy")).1, [sent(worker, "busy")]);
    assert_eq!(shop.harness.request(client, ask(1, "q", "head").within(40)), []);
    assert_eq!(shop.harness.request(client, ask(2, "q", "next")), []);
    assert_eq!(shop.harness.pass(30), []);
    let id = shop.harness.waiting("q").remove(0);
    let told = shop.harness.explain(id.parse().expect("an id is shown as it is asked for"));
    assert_eq!(
        told.because.0,
        Reason::AllBusy { workers: 1, used: 1, ahead: 0, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
    );
    assert_eq!(shop.harness.ack(worker, "busy").len(), 2);
    assert_eq!(shop.harness.look(AdminCall::MessageExplain { id }), Err(Code::NotFound));
    let after = shop.harness.queue("q").counters;
    assert_eq!((after.expired - before.expired, after.deliveries - before.deliveries), (1, 2));
}
