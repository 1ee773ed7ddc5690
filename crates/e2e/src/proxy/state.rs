//! The switches of a proxy, and what it counted.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use turno_proto::native::Kind;

use crate::wait::PATIENCE;

/// How long a thread of the proxy may not notice a switch.
pub(super) const TICK: Duration = Duration::from_millis(5);

/// A way through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the target.
    There,
    /// Back from it.
    Back,
}

impl Way {
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// As if the machine had lost it: RST.
    Reset,
    /// As if both programs had closed it: FIN.
    Fin,
}

/// A frame in place of which the connection is cut, once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trap {
    pub(super) way: Way,
    pub(super) kind: Kind,
    /// From 1, of each connection.
    pub(super) nth: usize,
}

#[derive(Debug)]
pub(super) struct Switches {
    pub(super) delay: [Duration; 2],
    pub(super) stalled: [bool; 2],
    pub(super) piece: [usize; 2],
    /// How often everything was cut; connections remember how often before they came.
    pub(super) cuts: u64,
    pub(super) how: Cut,
    pub(super) refusing: bool,
    /// The acceptor does not listen.
    pub(super) closed: bool,
    pub(super) over: bool,
    pub(super) taken: usize,
    pub(super) open: usize,
    pub(super) passed: [u64; 2],
    pub(super) heard: [u64; 2],
    /// The trap did what it is for.
    pub(super) sprung: bool,
}

#[derive(Debug)]
pub(super) struct State {
    switches: Mutex<Switches>,
    changed: Condvar,
    pub(super) trap: Option<Trap>,
}

impl State {
    pub(super) const fn new(trap: Option<Trap>) -> Self {
        let switches = Switches {
            delay: [Duration::ZERO; 2],
            stalled: [false; 2],
            piece: [usize::MAX; 2],
            cuts: 0,
            how: Cut::Reset,
            refusing: false,
            closed: false,
            over: false,
            taken: 0,
            open: 0,
            passed: [0; 2],
            heard: [0; 2],
            sprung: false,
        };
        Self { switches: Mutex::new(switches), changed: Condvar::new(), trap }
    }

    fn lock(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().expect("nobody panics with the switches in hand")
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Switches) -> T) -> T {
        look(&self.lock())
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Switches) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Waits for a change of any switch, or so long.
    pub(super) fn rest(&self, time: Duration) {
        drop(self.changed.wait_timeout(self.lock(), time).expect("nobody panics with the switches in hand"));
    }

    /// Waits until the proxy's own threads have seen to it.
    #[track_caller]
    pub(super) fn until(&self, holds: impl Fn(&Switches) -> bool) {
        let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, |switches| !holds(switches));
        let (_guard, late) = waited.expect("nobody panics with the switches in hand");
        assert!(!late.timed_out(), "the proxy does not do what it is told");
    }

    /// A connection comes; how many cuts were before it.
    pub(super) fn enter(&self) -> u64 {
        self.change(|switches| {
            switches.taken += 1;
            switches.open += 1;
            switches.cuts
        })
    }

    pub(super) fn leave(&self) {
        self.change(|switches| switches.open -= 1);
    }

    /// How a connection that came after so many cuts must end, if it must.
    pub(super) fn verdict(&self, born: u64) -> Option<Cut> {
        self.look(
            |switches| {
                if switches.over { Some(Cut::Fin) } else { (switches.cuts > born).then_some(switches.how) }
            },
        )
    }
}
