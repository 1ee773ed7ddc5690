//! Dead letters: queues above `limits.dead`, and whether dead letters cause refusals.

use turno_proto::model::view::BrokerView;

use super::Report;
use crate::cli::size;
use crate::cli::words::count;
use turno_broker::storage::Dead;

/// Queues that get a line each.
const QUEUES_MAX: usize = 10;

/// A line for each queue that has too many.
pub(super) fn look<'a>(all: u64, many: impl ExactSizeIterator<Item = (&'a str, Dead)>, most: u64, report: &mut Report) {
    if many.len() == 0 {
        let what = format!("{}; no queue exceeds {most} (limits.dead)", count(all, "dead letter", "dead letters"));
        report.ok("dead", what);
        return;
    }
    let more = many.len().saturating_sub(QUEUES_MAX);
    for (queue, Dead { count, bytes }) in many.take(QUEUES_MAX) {
        let bytes = size::short(bytes);
        let what = format!("queue {queue} has {count} dead letters ({bytes}), more than {most} (limits.dead)");
        let advice = format!(
            "dead letters are never deleted automatically and use memory: turno queue dead ls {queue}, then turno \
                 queue dead retry {queue} --all or turno queue dead purge {queue} --all"
        );
        report.warn("dead", what, &advice);
    }
    if more > 0 {
        let what = format!("{} with more than {most} dead letters", count(more as u64, "more queue", "more queues"));
        report.warn("dead", what, "turno queue ls");
    }
}

/// Whether new messages are refused now, and what the memory went to.
pub(super) fn look_at_memory(broker: &BrokerView, report: &mut Report) {
    let (memory, most) = (&broker.memory, broker.bytes_max);
    let (used, free) = (memory.used, memory.kept_free);
    let what = format!("{} of {} (limits.memory) in use", size::short(used), size::short(most));
    if !memory.is_short(most) {
        report.ok("memory", what);
        return;
    }
    let what = format!(
        "{what}, {} reserved for frames: the broker refuses new messages (over_memory), or soon will; dead letters use {}",
        size::short(free),
        size::short(memory.dead)
    );
    let advice = if memory.is_mostly_dead() {
        "dead letters are the cause: turno queue ls, then turno queue dead retry QUEUE --all or turno queue dead purge QUEUE --all"
    } else {
        "turno status shows the memory by use; let workers catch up, or raise limits.memory"
    };
    report.warn("memory", what, advice);
}
