//! The ring, as programs read it.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::ring::RingState;
use turno_proto::model::ring::view::{MemberView, RingCounters, RingView};

use super::Document;
use crate::cli::ring::told;
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, micros, rfc3339, seconds};
use crate::cli::words::one_line;

/// The ring as one member sees it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RingBody {
    /// The number of the broker that was asked.
    pub(crate) sid: u16,
    /// Which of its lives: the later of two has the higher one.
    pub(crate) incarnation: u64,
    /// Where other members reach it.
    pub(crate) address: String,
    /// True if members prove that they know a secret. Without one, any process on this machine can pose as a member.
    pub(crate) secret: bool,
    /// `alone`, `joining`, `member`, `rewiring`, `link-down`, `leaving` or `off`.
    pub(crate) state: String,
    /// Since when it is in that state.
    pub(crate) since_at: String,
    /// True if its last roll call came round and nothing has changed since: the ring is a circle.
    pub(crate) whole: bool,
    /// Why it is not whole, in words; null if it is.
    pub(crate) why: Option<String>,
    /// The sid of the member that sends to it.
    pub(crate) previous: Option<u16>,
    /// The sid of the member that it sends to.
    pub(crate) next: Option<u16>,
    /// The circle in order, the broker that was asked first, as its last roll call found it.
    pub(crate) members: Vec<MemberRow>,
    /// Known members that are not in the circle and did not leave.
    pub(crate) lost: Vec<MemberRow>,
    /// How long its last roll call took to come round; null while none did.
    pub(crate) round_trip_seconds: Option<f64>,
    /// Its own publications that have not come round.
    pub(crate) not_round: u64,
    /// How long ago the oldest of these was sent; null if there is none.
    pub(crate) oldest_seconds: Option<f64>,
    /// Publications of all that are kept, should a neighbour need them again.
    pub(crate) buffered: u64,
    /// Bytes of these.
    pub(crate) buffer_bytes: u64,
    /// True while publishers are slowed down.
    pub(crate) slowed: bool,
    /// What happened so far.
    pub(crate) counters: RingCountersBody,
    /// Why it is not in the ring: a word of `turno explain`.
    pub(crate) code: Option<String>,
}

impl RingBody {
    pub(crate) fn new(view: &RingView, clock: &Clock) -> Self {
        Self {
            sid: view.sid.get(),
            incarnation: view.incarnation,
            address: view.address.clone(),
            secret: view.has_secret,
            state: state(view.state).to_owned(),
            since_at: rfc3339(clock.ago(view.since_ms)),
            whole: view.whole,
            why: told::why_not_whole(view),
            previous: view.previous.map(|sid| sid.get()),
            next: view.next.map(|sid| sid.get()),
            members: view.members.iter().map(|member| MemberRow::new(member, role(view, member))).collect(),
            lost: view.lost.iter().map(|member| MemberRow::new(member, "lost".to_owned())).collect(),
            round_trip_seconds: view.round_trip_us.map(micros),
            not_round: view.not_round,
            oldest_seconds: view.oldest_ms.map(seconds),
            buffered: view.buffered,
            buffer_bytes: view.buffer_bytes,
            slowed: view.slowed,
            counters: RingCountersBody::from(&view.counters),
            code: view.code.clone(),
        }
    }
}

/// A state in one word.
pub(crate) const fn state(state: RingState) -> &'static str {
    match state {
        RingState::Alone => "alone",
        RingState::Joining => "joining",
        RingState::Member => "member",
        RingState::Rewiring => "rewiring",
        RingState::LinkDown => "link-down",
        RingState::Leaving => "leaving",
        RingState::Off => "off",
    }
}

/// What a member is to the broker that was asked. In a ring of two the other one is both neighbours.
fn role(view: &RingView, member: &MemberView) -> String {
    let is = |sid: Option<_>| sid == Some(member.sid);
    let roles = [
        (member.sid == view.sid, "me"),
        (is(view.previous) && member.sid != view.sid, "previous"),
        (is(view.next) && member.sid != view.sid, "next"),
    ];
    roles.iter().filter(|(is, _)| *is).map(|(_, role)| *role).collect::<Vec<_>>().join(",")
}

/// A member of the ring.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct MemberRow {
    /// Its number.
    pub(crate) sid: u16,
    /// What it is to the broker that was asked: `me`, `previous`, `next`, `previous,next`, `lost`, or empty.
    pub(crate) role: String,
    /// Which of its lives.
    pub(crate) incarnation: u64,
    /// Where other members reach it.
    pub(crate) address: String,
    /// Where it takes clients; null if it does not say.
    pub(crate) native: Option<String>,
}

impl MemberRow {
    fn new(view: &MemberView, role: String) -> Self {
        let native = (!view.native.is_empty()).then(|| view.native.clone());
        Self { sid: view.sid.get(), role, incarnation: view.incarnation, address: view.address.clone(), native }
    }
}

impl Document for MemberRow {
    const SCHEMA: &'static str = "turno.member_row/1";
}

impl Row for MemberRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("sid", |row, _| row.sid.to_string()),
        Column::new("role", |row, _| row.role.clone()),
        Column::new("incarnation", |row, _| row.incarnation.to_string()),
        Column::new("address", |row, _| one_line(&row.address)),
        Column::new("native", |row, _| row.native.as_deref().map(one_line).unwrap_or_default()),
    ];

    fn name(&self) -> String {
        self.sid.to_string()
    }
}

/// What a member counts. Numbers only rise.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RingCountersBody {
    /// Publications of its own.
    pub(crate) published: u64,
    /// Of these, those that came round.
    pub(crate) came_round: u64,
    /// Publications of others that it got.
    pub(crate) received: u64,
    /// Publications that it had already.
    pub(crate) duplicates: u64,
    /// Publications that went round while it was not in the ring.
    pub(crate) missed: u64,
    /// Frames in its name that it never sent.
    pub(crate) forged: u64,
    /// Frames that had been through too many members.
    pub(crate) hop_limit: u64,
    /// Publications of members that send more than they may.
    pub(crate) flooded: u64,
    /// Greetings and openings that it refused.
    pub(crate) refused: u64,
    /// Times that its place changed because a member had fallen.
    pub(crate) healed: u64,
}

impl From<&RingCounters> for RingCountersBody {
    fn from(counters: &RingCounters) -> Self {
        let RingCounters { published, came_round, received, duplicates, missed, .. } = *counters;
        let RingCounters { forged, hop_limit, flooded, refused, healed, .. } = *counters;
        Self { published, came_round, received, duplicates, missed, forged, hop_limit, flooded, refused, healed }
    }
}

/// The answer of `turno ring`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RingDocument {
    /// As it is now.
    pub(crate) ring: RingBody,
}

impl Document for RingDocument {
    const SCHEMA: &'static str = "turno.ring/1";
}
