//! ZMTP: golden bytes, each state, each bad input, and two ends under random splits.

mod bad_frames;
mod bad_handshake;
mod curve_faults;
mod end;
#[path = "../golden/mod.rs"]
mod golden;
mod heartbeat;
mod states;
mod traffic;
mod two_ends;
mod vectors;
