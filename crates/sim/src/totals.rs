//! What many runs came to.

use std::fmt;

use turno_sim::Outcome;

#[derive(Debug, Default)]
pub(crate) struct Totals {
    steps: u64,
    answered: u64,
    tokens: u64,
    fenced_off: u64,
    tasks: u64,
    events: u64,
    dropped: u64,
    crossed: u64,
    came_round: u64,
}

impl Totals {
    pub(crate) const fn add(&mut self, outcome: &Outcome) {
        self.steps += outcome.steps;
        self.answered += outcome.answered;
        self.tokens += outcome.tokens;
        self.fenced_off += outcome.fenced_off;
        self.tasks += outcome.tasks;
        self.events += outcome.events;
        self.dropped += outcome.dropped;
        self.crossed += outcome.crossed;
        self.came_round += outcome.came_round;
    }

    pub(crate) const fn join(&mut self, other: &Self) {
        self.steps += other.steps;
        self.answered += other.answered;
        self.tokens += other.tokens;
        self.fenced_off += other.fenced_off;
        self.tasks += other.tasks;
        self.events += other.events;
        self.dropped += other.dropped;
        self.crossed += other.crossed;
        self.came_round += other.came_round;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, answered, tokens, fenced_off, tasks, events, dropped, crossed, came_round } = self;
        write!(
            f,
            "{steps} events, {answered} answers, {tokens} tokens ({fenced_off} replies under old ones), {tasks} tasks, \
             {events} events told ({dropped} left out), {crossed} crossings, {came_round} publications that came round"
        )
    }
}
