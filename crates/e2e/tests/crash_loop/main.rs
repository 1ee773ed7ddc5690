//! The real broker is killed under load again and again, and loses nothing that it said it had.
//!
//! `TURNO_TEST_CRASHES=2000 cargo test -p turno-e2e --test crash_loop` does more rounds (nextest would end it after two
//! minutes); `TURNO_TEST_SEED` chooses others.

mod book;
mod life;

use std::sync::atomic::AtomicU32;
use std::thread;

use rustix::process::{Pid, Signal};
use turno_e2e::{Broker, Peer, Place, wait};
use turno_proto::model::view::{Explanation, QueueView, Reason};
use turno_proto::model::{Code, Slots};

use crate::book::{Book, POISON_RETRIES, QUEUE};
use crate::life::{Event, Life, Manner};

/// Every so many rounds the broker is asked to end instead.
const IN_ORDER_EVERY: u32 = 10;

fn number_from(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Numbers that look like chance and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).expect("31 bits") % sides
    }
}

fn id_of(broker: &mut Broker) -> Pid {
    i32::try_from(broker.process().id()).ok().and_then(Pid::from_raw).expect("a process id")
}

/// A broker with waits so short that failed sends come again within a life.
fn start(place: Place) -> Broker {
    let config = place.file("turno.toml", "queue.defaults.retry-delay = \"20ms\"\n").display().to_string();
    Broker::start_in(place, &["--config", &config])
}

/// A life under load, and its end. The next one can begin.
fn live(place: Place, number: u32, book: &Book, dice: &mut Dice) -> Place {
    let mut broker = start(place);
    let address = broker.address();
    let mut asker = Peer::greeted(address, 0);
    for id in book.waiting(3) {
        let reason = asker.explain(id).because.0;
        assert!(matches!(reason, Reason::NoWorker | Reason::Behind { .. }), "life {number}, {id}: {reason:?}");
    }
    let is_in_order = number % IN_ORDER_EVERY == IN_ORDER_EVERY - 1;
    let event = [Event::Sent, Event::Confirmed, Event::Delivered][dice.below(3) as usize];
    let life = Life {
        number,
        book,
        broker: id_of(&mut broker),
        signal: if is_in_order { Signal::TERM } else { Signal::KILL },
        at: (event, 1 + dice.below(200)),
        count: AtomicU32::new(0),
    };
    let manners = [
        Manner::Steady,
        Manner::Wavering,
        Manner::Mortal(1 + dice.below(20) as usize),
        Manner::Mortal(1 + dice.below(60) as usize),
    ];
    // All are there before anything is counted: a later one might find no broker.
    let producers: Vec<Peer> = (0..2).map(|_| Peer::client(address, QUEUE)).collect();
    let workers: Vec<Peer> = manners.iter().map(|_| Peer::worker(address, QUEUE, Slots::Limited(16), "w")).collect();
    let life = &life;
    thread::scope(|scope| {
        for (peer, manner) in workers.into_iter().zip(manners) {
            scope.spawn(move || life.work(peer, manner));
        }
        for peer in producers {
            scope.spawn(move || life.produce(peer));
        }
    });
    let code = broker.process().end(wait::PATIENCE);
    assert_eq!(code, if is_in_order { 0 } else { 137 }, "life {number}: {:?}", broker.process().stderr());
    if is_in_order {
        book.ended_in_order(number);
    }
    assert_eq!(book.wrong(), Vec::<String>::new(), "life {number}");
    broker.into_place()
}

/// A life in which nothing is sent: a steady worker does what is left, and the broker ends in order.
fn drain(place: Place, number: u32, book: &Book) -> Place {
    let mut broker = start(place);
    let life = Life {
        number,
        book,
        broker: id_of(&mut broker),
        signal: Signal::TERM,
        at: (Event::Sent, 1),
        count: AtomicU32::new(0),
    };
    let worker = Peer::worker(broker.address(), QUEUE, Slots::Limited(64), "last");
    let mut asker = Peer::greeted(broker.address(), 0);
    thread::scope(|scope| {
        scope.spawn(|| life.work(worker, Manner::Steady));
        let done = wait::find(wait::PATIENCE, || {
            let QueueView { ready, delayed, in_flight, dead, .. } = asker.queue(QUEUE);
            (ready + delayed + in_flight == 0 && book.can_be_dead(dead) && book.open().is_empty()).then_some(())
        });
        // Read before the broker ends, asserted after it: the worker waits for that end.
        let left = asker.queue(QUEUE);
        assert_eq!(broker.terminate(wait::PATIENCE), 0, "{:?}", broker.process().stderr());
        assert!(done.is_some(), "lost: {:?}; {} must be dead in {left:?}", book.open(), book.dead().len());
    });
    book.ended_in_order(number);
    assert_eq!(book.wrong(), Vec::<String>::new(), "the last life");
    broker.into_place()
}

/// Nothing answered as stored is lost, nothing is invented or changed, ids hold, a message is delivered at most once
/// more for each crash, a dead letter dies once, and what was done before an end in order is not done again. Proves
/// S2.34 and S2.35 across crashes.
#[test]
#[expect(clippy::print_stdout, reason = "a failure must name its seed; the runner shows it only then")]
fn what_was_stored_outlives_every_crash() {
    let rounds = u32::try_from(number_from("TURNO_TEST_CRASHES", 100)).expect("fewer rounds");
    let seed = number_from("TURNO_TEST_SEED", 5);
    println!("TURNO_TEST_SEED={seed} TURNO_TEST_CRASHES={rounds}");
    let (book, mut dice) = (Book::default(), Dice(seed));
    let mut place = Place::new();
    for number in 0..rounds {
        place = live(place, number, &book, &mut dice);
    }
    place = drain(place, rounds, &book);
    let mut broker = start(place);
    let mut asker = Peer::greeted(broker.address(), 0);
    let dead = book.dead();
    let left = asker.queue(QUEUE);
    assert_eq!((left.ready, left.delayed, left.in_flight), (0, 0, 0), "after an end in order");
    assert!(book.can_be_dead(left.dead), "{} must be dead, {} are", dead.len(), left.dead);
    for (number, id) in dead {
        let Explanation { message, because } = asker.explain(id);
        let Reason::Dead { failure } = &*because else { panic!("{id} is no dead letter: {because:?}") };
        let is_known = *failure == format!("cannot do {number}") || failure == Code::WorkerLost.text().what;
        assert!(is_known, "{id}: {failure}");
        assert_eq!(message.attempts, u16::from(POISON_RETRIES) + 1, "{id}");
    }
    let (sent, confirmed, repeated) = book.counts();
    println!("{sent} sent, {confirmed} confirmed, {repeated} delivered more than once");
    assert!(confirmed >= rounds as usize && sent > confirmed && repeated > 0, "the crashes came under load");
    assert_eq!(broker.terminate(wait::PATIENCE), 0);
}
